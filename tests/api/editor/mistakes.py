"""Mistakes as people make them while they type: what becomes what, the wrong range in «», the code.

Where nothing is marked, the place is not compared.
"""

from __future__ import annotations

DELAYED = "datasets/flights/nyc.flights.delayed.yaml"
DAILY = "datasets/departures/nyc.delays.daily.yaml"
WEATHER = "datasets/departures/nyc.departures.weather.yaml"
DEPARTURES = "datasets/departures/nyc.departures.yaml"
DISRUPTIONS = "datasets/weather/nyc.disruptions.yaml"
FLIGHTS = "datasets/roots/us.bts.flights.yaml"
STATIONS = "datasets/roots/us.iem.weather.yaml"
AIRPORT = "datasets/departures/by-airport.yaml.j2"
LONG_HAUL = "datasets/flights/nyc.flights.long-haul.yaml.j2"
TESTS = "datasets/flights/nyc.flights.delayed.test.yaml"
SETTINGS = "odfbuild.yaml"

# fmt: off
MISTAKES = [
    (DELAYED, "kind: Derivative", "kind: [Derivative", "E0101"),
    (DELAYED, "alias: flights", "\talias: flights", "E0101"),
    (DELAYED, "name: nyc.flights.delayed\n", "name: 'nyc.flights.delayed\n", "E0101"),
    (DELAYED, "        engine: spark\n", "        engine: spark\n        «engine»: spark\n", "E0102"),
    (DELAYED, "kind: Derivative", "kind: !odd Derivative", "E0101"),
    (DELAYED, "version: 1\n", "version: 1\n version: 2\n", "E0101"),
    (DELAYED, "          alias: flights", "          «alais»: flights", "E0104"),
    (DELAYED, "  kind: Derivative", "  «kinds»: Derivative", "E0104"),
    (DELAYED, "kind: SetTransform", "kind: «SetTransfrom»", "E0107"),
    (DELAYED, "  kind: Derivative", "  kind: «Derived»", "E0107"),
    (DELAYED, "version: 1", "version: «2»", "E0107"),
    (DELAYED, "kind: DatasetSnapshot", "kind: «DatasetSnapshoot»", "E0109"),
    (DELAYED, "description: Flights", "«descripton»: Flights", "E0104"),
    (DELAYED, "  name: nyc.flights.delayed\n", "", "E0106"),
    (DELAYED, "name: nyc.flights.delayed\n", "name: «nyc_flights»\n", "E0107"),
    (DELAYED, "        kind: Sql\n", "        kind: «Sequel»\n", "E0107"),
    (DELAYED, "        engine: spark\n", "", "E0106"),
    (FLIGHTS, "kind: FilesGlob", "kind: «FileGlob»", "E0107"),
    (FLIGHTS, "order: ByName", "order: «ByNam»", "E0107"),
    (FLIGHTS, "header: true", "header: «yes»", "E0105"),
    (FLIGHTS, "kind: Ledger", "kind: «Legder»", "E0107"),
    (FLIGHTS, "nullValue: NA", "«nulValue»: NA", "E0104"),
    (FLIGHTS, "        primaryKey:\n          - flight_date\n          - carrier\n          - flight\n          - origin\n", "", "E0106"),
    (DELAYED, "datasetRef: us.bts.flights", "«datasetRef»: us.bts.flihgts", "E0202"),
    (DELAYED, "name: nyc.flights.delayed\n", "«name»: nyc.flights.cancelled\n", "E0201"),
    (DAILY, "datasetRef: nyc.departures", "«datasetRef»: nyc.departure", "E0202"),
    (DELAYED, "datasetRef: us.bts.flights", "datasetRef: nyc.flights.delayed", "E0203"),
    (DELAYED, "arr_delay >= 15", "«arr_dely» >= 15", "E0501"),
    (DELAYED, "FROM flights", "FROM «flight»", "E0504"),
    (DELAYED, "WHERE arr_delay", "«WHER» arr_delay", "E0501"),
    (DELAYED, "carrier,", "«uper»(carrier) AS carrier,", "E0501"),
    (DELAYED, "carrier,", "«now»() AS carrier,", "E0505"),
    (DELAYED, "carrier,", "«round»(dep_delay, 1, 2) AS carrier,", "E0501"),
    (DELAYED, "            event_time,\n", "", "E0515"),
    (DELAYED, "arr_delay - dep_delay AS", "(arr_delay - dep_delay AS", "E0501"),
    (DELAYED, "origin,", "origin,«,»", "E0501"),
    (DELAYED, "dest,", "origin AS carrier,", "E0511"),
    (DELAYED, "arr_delay >= 15", "lost_in_the_air >= 15", "E0501"),
    (DELAYED, "WHERE arr_delay >= 15", "WHERE «count»(*) > 1", "E0501"),
    (DELAYED, "          SELECT\n", "          DELETE FROM flights; «SELECT»\n", "E0501"),
    (DELAYED, "flight,", "«{{ flight }}» AS flight,", "E0550"),
    (DELAYED, "flight,", "'é😀' AS odd, «flihgt»,", "E0501"),
    (DELAYED, "dep_delay,\n", "\"dep_delay\",\n", "E0501"),
    (DAILY, "SUM(dep_delay)", "SUM(«dep_dely»)", "E0501"),
    (DAILY, "COUNT_IF", "«COUNTIF»", "E0501"),
    (DAILY, ", carrier\n    - kind", "\n    - kind", "E0501"),
    (DAILY, "SUM(dep_delay)", "«first»(dep_delay)", "E0506"),
    (WEATHER, "w.visib", "w.«visibility»", "E0501"),
    (WEATHER, "d.dest,", "«x.dest»,", "E0501"),
    (WEATHER, "d.event_time,", "«event_time»,", "E0501"),
    (WEATHER, "JOIN weather w", "JOIN «wether» w", "E0504"),
    (WEATHER, "date_trunc(", "«date_trun»(", "E0501"),
    (DEPARTURES, "          FROM lga", "          FROM «lgaa»", "E0504"),
    (DEPARTURES, "distance, sched_dep_time, dep_delay\n          FROM jfk", "distance\n          FROM jfk", "E0501"),
    (DISRUPTIONS, "concat_ws(", "«concat_wss»(", "E0501"),
    (DISRUPTIONS, "round(wind_gust)", "round(«gust»)", "E0501"),
    (WEATHER, "query: |\n          SELECT\n            d.event_time,", "query: >-\n          SELECT\n            d.«event_tim»,", "E0501"),
    (FLIGHTS, "- carrier STRING\n", "- carrier «STRNG»\n", "E0160"),
    (FLIGHTS, "FROM input", "FROM «inputs»", "E0504"),
    (FLIGHTS, "make_date(year", "make_date(«yaer»", "E0501"),
    (FLIGHTS, "          - flight_date\n", "          - «flight_dat»\n", "E0430"),
    (STATIONS, "time_hour AS observed_at", "«time_our» AS observed_at", "E0501"),
    (STATIONS, "          - observed_at", "          - «observed_ats»", "E0430"),
    (AIRPORT, "'{{ origin }}' AS", "'{{ «orign» }}' AS", "E0121"),
    (AIRPORT, "  origin: [EWR, JFK, LGA]", "  origin: EWR", "E0120"),
    (AIRPORT, "matrix:", "matrx:", "E0121"),
    (AIRPORT, "{{ origin | lower }}\n  kind", "{{ origin | lowr }}\n  kind", "E0124"),
    (AIRPORT, "flight_date,", "«flihgt_date»,", "E0501"),
    (AIRPORT, "'{{ origin }}' AS", "'{{ origin ' AS", "E0123"),
    (LONG_HAUL, "FROM flights", "FROM «flight»", "E0504"),
    (LONG_HAUL, "FROM long_haul", "FROM «long_hall»", "E0504"),
    (LONG_HAUL, "{{ long_haul_miles }}", "{{ «long_haul_mile» }}", "E0121"),
    (TESTS, "dataset: nyc.flights.delayed", "dataset: «nyc.flights.delaid»", "E1240"),
    (TESTS, "        us.bts.flights:\n          rows:\n            - {flight: 1, arr_delay: 14}", "        «us.bts.flihgts»:\n          rows:\n            - {flight: 1, arr_delay: 14}", "E1241"),
    (TESTS, "{flight: 1, arr_delay: 14}", "{flight: 1, «arr_dely»: 14}", "E1245"),
    (TESTS, "      expect:\n        rows:\n          - {flight: 2}\n", "", "E1242"),
    (TESTS, "kind: UnitTests", "«kind»: UnitTest", "E0105"),
    (SETTINGS, "  state: chains", "  «stat»: chains", "E0104"),
    (SETTINGS, "format: delta", "«format»: dleta", "E0105"),
    (SETTINGS, "match: [nyc.delays.daily]", "match: [«nyc.delay.daily»]", "E0151"),
    (SETTINGS, "partitionBy: [carrier]", "partitionBy: [«carier»]", "E1304"),
    (SETTINGS, "  name: nycflights\n", "", "E0105"),
]
# fmt: on
