"""Reads a T4 file as Kernel Tuner and the tools around it do.

usage: check_t4.py FILE
Prints "valid" and exits 0 when the schema that the installed kernel_tuner
carries takes the file; autotuning_methodology reads it, too, where installed.
"""
import json
import pathlib
import sys

import jsonschema
import kernel_tuner

path = pathlib.Path(sys.argv[1])
schema = next((pathlib.Path(kernel_tuner.__file__).parent / "schema" / "T4")
              .glob("*/results-schema.json"))
document = json.loads(path.read_text())
jsonschema.validate(document, json.loads(schema.read_text()))
print(f"valid by {schema.parent.name}/{schema.name}: "
      f"{len(document['results'])} results")
try:
    from autotuning_methodology.searchspace_statistics import (
        SearchspaceStatistics)
except ImportError:
    print("autotuning_methodology is not installed: not read with it")
    sys.exit(0)
statistics = SearchspaceStatistics(
    application_name="regatta", device_name="here", minimization=True,
    objective_time_keys=["compilation", "benchmark"],
    objective_performance_keys=["time"],
    full_search_space_file_path=path, full_validate=True)
best = statistics.total_performance_absolute_optimum()
fastest = min(r["measurements"][0]["value"] for r in document["results"]
              if r["invalidity"] == "correct")
assert abs(best - fastest) < 1e-12 * max(1, fastest), (best, fastest)
print(f"read by autotuning_methodology: {statistics.size} configurations, "
      f"optimum {best} ms")
