//! The collector, driven by keys and the mouse.
