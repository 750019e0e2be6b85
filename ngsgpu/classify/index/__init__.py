"""From features to the windows that have them."""
