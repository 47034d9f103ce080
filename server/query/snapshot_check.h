// Whether bytes are a snapshot that can be used without further checks.
#ifndef REGATTA_SERVER_QUERY_SNAPSHOT_CHECK_H_
#define REGATTA_SERVER_QUERY_SNAPSHOT_CHECK_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/query/snapshot_format.h"

namespace regatta {

struct SnapshotTables {
  snapshot::Header header;
  absl::Span<const snapshot::Workload> workloads;
  absl::Span<const uint32_t> structures;
  absl::Span<const snapshot::TextHash> texts;
  absl::Span<const snapshot::Cell> cells;
  absl::Span<const snapshot::Class> classes;
  absl::Span<const int64_t> extents;
  std::string_view text;
};

// The tables, in the bytes. Every index and text in them is in range, every
// table in its order, every extent positive. InvalidArgument: no snapshot.
// FailedPrecondition: of another version. DataLoss: cut off or damaged; says
// what and where. REQUIRES: `bytes` begin at a multiple of 8.
absl::StatusOr<SnapshotTables> CheckSnapshot(std::string_view bytes);

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_SNAPSHOT_CHECK_H_
