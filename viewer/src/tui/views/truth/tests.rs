//! The truth, driven by keys and the mouse.
