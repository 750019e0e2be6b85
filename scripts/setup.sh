#!/usr/bin/env bash
# Sets up what the demo or the tests need, inside the checkout as far as possible:
#   scripts/setup.sh demo    .venv with ngsgpu and Snakemake; ART, SPAdes, QUAST, MultiQC
#   scripts/setup.sh test    the same, and what the tests and checks need: also CuPy and CUDA's
#                            compiler, by which kernels are compiled without a GPU, fastp and
#                            FLASH, which trimming and merging are compared with, samtools, which
#                            BAM input is compared with, and KronaTools
#   scripts/setup.sh readers TAXPASTA, biom and MultiQC, with which further tests read the outputs
#                            of classification
#
# Python packages come through uv or pip into .venv, .tools/quast and the like (elsewhere if
# the checkout's path has a space: see TOOLS). ART, SPAdes, minimap2, bwa, fastp, FLASH, samtools
# and KronaTools are taken from the PATH if they are there; else from conda environments under
# .tools/conda, where conda, mamba or micromamba is on the PATH; else from the system's packages
# (apt-get as root or by sudo).
# Running it again is quick: what is up to date stays as it is.
#
# PYTHON names the interpreter to use instead of the newest on the PATH.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
TOOLS=$ROOT/.tools
# QUAST refuses to live in a path with a space.
if [[ $ROOT == *[[:space:]]* ]]; then TOOLS=${XDG_CACHE_HOME:-$HOME/.cache}/ngsgpu-tools; fi
QUAST=quast==5.2.0
MULTIQC=multiqc==1.35
# TAXPASTA 0.7 takes no newer pandera.
READERS=(taxpasta==0.7.0 "pandera<0.21" "biom-format>=2.1.15,<3")
# Minutes to wait while another program installs system packages.
PATIENCE=15

# The Makefile puts these first; what set-up itself runs must come from the system.
SYSTEM_PATH=:$PATH:
SYSTEM_PATH=${SYSTEM_PATH//:"$ROOT"\/.venv\/bin:/:}
SYSTEM_PATH=${SYSTEM_PATH//:"$ROOT"\/.tools\/bin:/:}
SYSTEM_PATH=${SYSTEM_PATH#:}
SYSTEM_PATH=${SYSTEM_PATH%:}
PATH=$SYSTEM_PATH

say() { printf '\n== %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The first of the conda programs that is there, or nothing.
conda_program() {
    local program
    for program in mamba conda micromamba; do
        if have "$program"; then echo "$program"; return; fi
    done
}

# Runs a command with the rights to install system packages.
as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif [[ -t 0 ]]; then
        sudo "$@"
    else
        sudo -n "$@"
    fi
}

can_apt() { have apt-get && { [[ $(id -u) == 0 ]] || have sudo; }; }

# Runs apt-get; waits while another program holds one of its locks, as the updates of a system that
# has just started do. apt's own waiting (DPkg::Lock::Timeout) leaves out the lists' lock and says
# nothing to a log.
apt_get() {
    local errors status told='' end=$((SECONDS + 60 * PATIENCE))
    errors=$(mktemp)
    while true; do
        status=0
        as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q "$@" \
            </dev/null 2>"$errors" || status=$?
        if [[ $status == 0 ]] || ! grep -q "Could not get lock" "$errors"; then break; fi
        if [[ $SECONDS -ge $end ]]; then
            say "Waited $PATIENCE minutes for the system's package manager in vain" >&2
            break
        fi
        if [[ -z $told ]]; then
            told=yes
            say "The system's package manager is busy; waiting up to $PATIENCE minutes" >&2
            grep "Could not get lock" "$errors" >&2
        fi
        sleep 5
    done
    cat "$errors" >&2
    rm -f "$errors"
    return "$status"
}

APT_UPDATED=
apt_install() {
    if [[ -z $APT_UPDATED ]]; then
        apt_get update || return
        APT_UPDATED=yes
    fi
    apt_get install -y --no-install-recommends "$@"
}

# A new conda environment at $1 from the environment file $2.
conda_environment() {
    local program
    program=$(conda_program)
    rm -rf "$1"
    case $program in
        micromamba) micromamba create -y -q -p "$1" -f "$2" ;;
        *) "$program" env create -q -p "$1" -f "$2" ;;
    esac </dev/null
}

python_is_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Prints an interpreter of at least Python 3.11 that can make virtual environments.
find_python() {
    local candidate found=
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if have "$candidate" && python_is_enough "$candidate"; then
            if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
                echo "$candidate"
                return
            fi
            found=${found:-$candidate}
        fi
    done
    if [[ -n $found ]] && can_apt; then
        # Debian and Ubuntu keep ensurepip in a separate package.
        local version
        version=$("$found" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        say "Installing $version-venv" >&2
        if apt_install "$version-venv" >&2 || apt_install python3-venv >&2; then
            echo "$found"
            return
        fi
    fi
    if [[ -n $(conda_program) ]]; then
        if ! [[ -x $TOOLS/conda/python/bin/python ]]; then
            say "Creating a Python environment by $(conda_program)" >&2
            conda_environment "$TOOLS/conda/python" "$ROOT/envs/python.yaml" >&2
        fi
        echo "$TOOLS/conda/python/bin/python"
        return
    fi
    if [[ -z $found${PYTHON:-} ]] && can_apt; then
        # Ubuntu 22.04 has Python 3.11 beside its python3, 3.10.
        for candidate in python3 python3.11; do
            say "Installing $candidate-venv" >&2
            if apt_install "$candidate-venv" >&2 && python_is_enough "$candidate"; then
                echo "$candidate"
                return
            fi
        done
    fi
    if [[ -n $found ]]; then
        die "$found cannot make virtual environments: install python3-venv, or put conda on the PATH"
    fi
    die "no Python of at least 3.11 on the PATH: install it, or name it by PYTHON=..."
}

# Makes the virtual environment $1, unless there is one that runs.
make_venv() {
    # By the script, not by python -m: its first line breaks if the checkout has moved.
    if "$1/bin/pip" --version >/dev/null 2>&1; then return; fi
    local python
    python=$(find_python)
    say "Creating ${1#"$ROOT"/} with $("$python" --version)"
    "$python" -m venv --clear "$1"
}

# uv into .venv, if it can be had.
setup_uv() {
    if [[ -x $ROOT/.venv/bin/uv ]]; then return; fi
    "$ROOT/.venv/bin/python" -m pip install -q --disable-pip-version-check "uv>=0.13" || true
}

# Installs packages into the venv $1: by uv, in a fraction of pip's time; by pip where uv fails, as
# it does not read pip's settings.
install_into() {
    local venv=$1
    shift
    "$ROOT/.venv/bin/uv" pip install -q --python "$venv/bin/python" "$@" ||
        "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile "$@"
}

# ngsgpu and the extras $1 into .venv, anew whenever pyproject.toml changes. The stamp holds what
# was installed for which pyproject.toml, so that the tests' extras also serve the demo.
setup_package() {
    local stamp=$ROOT/.venv/.ngsgpu-extras state
    state=$(sha256sum "$ROOT/pyproject.toml" | cut -d ' ' -f 1)
    if [[ -f $stamp && $(<"$stamp") == "$state $1"* ]]; then return; fi
    say "Installing ngsgpu[$1] into .venv"
    install_into "$ROOT/.venv" --editable "${ROOT}[$1]"
    echo "$state $1" >"$stamp"
}

# Puts the command $1 into .tools/bin. It runs $2, by the interpreter $3 if there is one (both paths
# below $TOOLS), with its folder first on PATH.
wrap() {
    local bin=$ROOT/.tools/bin tools
    tools=$(printf '%q' "$TOOLS")
    # A checkout that is moved takes its tools along.
    if [[ $TOOLS == "$ROOT/.tools" ]]; then
        tools="\$(cd \"\$(dirname \"\${BASH_SOURCE[0]}\")/..\" && pwd)"
    fi
    mkdir -p "$bin"
    cat >"$bin/$1" <<END
#!/usr/bin/env bash
tools=$tools
PATH=\$tools/$(dirname "$2"):\$PATH
exec ${3:+"\"\$tools/$3\""} "\$tools/$2" "\$@"
END
    chmod +x "$bin/$1"
}

# Installs the program $1 from the conda environment envs/$2.yaml.
tool_from_conda() {
    say "Creating a conda environment for $2"
    conda_environment "$TOOLS/conda/$2" "$ROOT/envs/$2.yaml" &&
        wrap "$1" "conda/$2/bin/$1"
}

# The program $1 from the first of these: PATH, conda (envs/$2.yaml) or the Debian package $3.
setup_tool() {
    if have "$1"; then return; fi
    if [[ -n $(conda_program) ]] && tool_from_conda "$1" "$2"; then return; fi
    can_apt || die "$1 is missing: install it, or put conda on the PATH, or run as root"
    say "Installing the system package $3"
    apt_install "$3" || die "apt-get could not install $3: see its message above"
    have "$1" || die "$3 is installed, but brought no $1"
}

# QUAST needs minimap2, which it would else compile, and other packages: hence a separate venv.
setup_quast() {
    if have quast.py; then return; fi
    if [[ -n $(conda_program) ]] && tool_from_conda quast.py quast; then return; fi
    setup_tool minimap2 quast minimap2
    make_venv "$TOOLS/quast"
    say "Installing QUAST into .tools/quast"
    # setuptools stands in for distutils, which QUAST imports and Python 3.12 no longer has.
    install_into "$TOOLS/quast" setuptools "$QUAST"
    wrap quast.py quast/bin/quast.py quast/bin/python
    # Newer Pythons warn of its regular expressions, once.
    PYTHONWARNINGS=ignore quast.py --version >/dev/null ||
        die "QUAST does not run: see its message above"
}

# MultiQC needs packages of many kinds: hence an own venv.
setup_multiqc() {
    if have multiqc; then return; fi
    if [[ -n $(conda_program) ]] && tool_from_conda multiqc multiqc; then return; fi
    make_venv "$TOOLS/multiqc"
    say "Installing MultiQC into .tools/multiqc"
    install_into "$TOOLS/multiqc" "$MULTIQC"
    wrap multiqc multiqc/bin/multiqc multiqc/bin/python
    multiqc --version >/dev/null || die "MultiQC does not run: see its message above"
}

# They need an older pandas than Snakemake: hence an own venv.
setup_readers() {
    setup_multiqc
    if have taxpasta && have biom; then return; fi
    make_venv "$TOOLS/readers"
    say "Installing TAXPASTA and biom into .tools/readers"
    install_into "$TOOLS/readers" "${READERS[@]}"
    local program
    for program in taxpasta biom; do
        wrap "$program" "readers/bin/$program" readers/bin/python
        "$program" --version >/dev/null || die "$program does not run: see its message above"
    done
}

main() {
    local extras
    case ${1:-} in
        readers)
            PATH=$ROOT/.tools/bin:$SYSTEM_PATH
            setup_readers
            return
            ;;
        demo) extras=workflow ;;
        test) extras=workflow,dev,docs,cuda13 ;;
        *) die "usage: scripts/setup.sh demo|test|readers" ;;
    esac
    make_venv "$ROOT/.venv"
    setup_uv
    # The programs come while the packages do. In a separate process group,
    # it ends with this script.
    set -m
    setup_package "$extras" &
    installing=$!
    set +m
    trap 'kill -- "-$installing" 2>/dev/null || true' EXIT
    PATH=$ROOT/.tools/bin:$SYSTEM_PATH
    setup_tool art_illumina art art-nextgen-simulation-tools
    setup_tool spades.py spades spades
    setup_quast
    setup_multiqc
    if [[ $1 == test ]]; then
        setup_tool fastp fastp fastp
        setup_tool flash flash flash
        setup_tool bwa bwa bwa
        setup_tool minimap2 minimap2 minimap2
        setup_tool samtools samtools samtools
        # Debian's name of KronaTools.
        setup_tool ktImportText krona radiant
    fi
    wait "$installing"
}

# Tests take the functions alone.
if [[ ${BASH_SOURCE[0]} == "$0" ]]; then main "$@"; fi
