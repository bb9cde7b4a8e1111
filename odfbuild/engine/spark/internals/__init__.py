"""Private parts of Spark: Catalyst's trees and the classes of the JVM."""
