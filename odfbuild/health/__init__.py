"""Whether everything is there that odfbuild needs around it, for `odfbuild doctor`."""
