"""Reads the dashboard and the alert rules, holds every query in them to the grammar of PromQL, and prints all as JSON."""

import json
import sys

import promql_parser
import yaml

dashboard, rules = sys.argv[1:]
with open(dashboard, encoding="utf-8") as file:
    panels = json.load(file)["panels"]
queries = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
with open(rules, encoding="utf-8") as file:
    groups = yaml.safe_load(file)["groups"]
for rule in (rule for group in groups for rule in group["rules"]):
    assert rule["labels"]["severity"] in ("page", "ticket") and rule["annotations"]["summary"], rule
    queries.append((rule["alert"], rule["expr"]))
for name, query in queries:
    try:
        promql_parser.parse(query)
    except Exception as error:
        sys.exit(f"{name}: {query}: {error}")
json.dump(queries, sys.stdout)
