"""Reads metrics from standard input with the parser of Prometheus's own Python client, and prints them as JSON."""

import json
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text

parse = {"openmetrics": openmetrics, "text": text}[sys.argv[1]].text_string_to_metric_families
families = [
    {
        "name": family.name,
        "type": family.type,
        "help": family.documentation,
        "samples": [[sample.name, sample.labels, sample.value] for sample in family.samples],
    }
    for family in parse(sys.stdin.read())
]
json.dump(families, sys.stdout)
