"""An engine that stays: a process with a warm Spark session, which commands of one user ask.

There is one for each project (environment and release of odfbuild included).
"""
