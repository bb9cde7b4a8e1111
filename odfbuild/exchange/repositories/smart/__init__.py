"""The Smart Transfer Protocol of Open Data Fabric, as peers speak it."""
