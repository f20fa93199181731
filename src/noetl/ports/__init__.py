"""What we need from the outside, each as a Protocol with numbered promises."""
