"""Training of the forests of ``ngsgpu correct --model`` from simulated reads with known truth.

``extract`` records what a forest sees of each position, and whether the consensus is right there;
``fit`` grows the trees (scikit-learn, needed for this alone) and measures them on what was left
out. ``ngsgpu.correct.forests.forest`` holds the format of the result.
"""
