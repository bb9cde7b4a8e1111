"""The checks of `odfbuild doctor`: what odfbuild needs on a machine."""
