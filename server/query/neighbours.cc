#include "server/query/neighbours.h"

#include "absl/strings/str_cat.h"
#include "proto/outcome_names.h"

namespace regatta {
namespace {

// "x86_64" of "x86_64-linux-gnu".
std::string ArchitectureOf(const Target& target) {
  return target.triple.substr(0, target.triple.find('-'));
}

}  // namespace

bool SameArchitecture(const std::string& row_target, const Target& target) {
  const auto row = ParseTarget(row_target);
  return row.ok() && row->kind == target.kind &&
         ArchitectureOf(*row) == ArchitectureOf(target);
}

std::string KeyDifference(const BestKey& row, const BestKey& asked) {
  if (row.device_class != asked.device_class) return "device_class";
  if (row.threads != asked.threads) return "threads";
  return row.cache != asked.cache ? "cache" : "provenance";
}

int KeyDistance(const BestKey& row, const BestKey& asked) {
  return (row.device_class != asked.device_class) +
         (row.threads != asked.threads) + (row.cache != asked.cache) +
         (row.imported != asked.imported);
}

std::string NeighbourReason(const BestKnown& row) {
  return absl::StrCat(
      "measured on ", row.key.device_class, " with ", row.key.threads,
      " thread(s), caches ", CacheStateName(row.key.cache),
      row.key.imported
          ? absl::StrCat(", by another log (", row.record.result.provenance(),
                         "), not by a board of this one")
          : "",
      "; its time here is unknown");
}

}  // namespace regatta
