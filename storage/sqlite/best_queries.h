// Best-known answers with their evidence. Each runs inside one read
// transaction.
#ifndef REGATTA_STORAGE_SQLITE_BEST_QUERIES_H_
#define REGATTA_STORAGE_SQLITE_BEST_QUERIES_H_

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"
#include "storage/tuning_log.h"

namespace regatta::sqlite {

absl::StatusOr<std::optional<BestKnown>> FindBest(Connection& db,
                                                  const BestKey& key);
absl::StatusOr<std::vector<BestKnown>> FindBestOfWorkload(
    Connection& db, std::string_view workload_key);
absl::StatusOr<std::vector<BestKnown>> FindBestOfNeighbours(
    Connection& db, const WorkloadInfo& workload, const BestKey& key,
    int limit);
// At most `limit` best-known rows that follow `after` in the order of the key,
// with their workloads; from the first without it.
absl::StatusOr<std::vector<std::pair<WorkloadInfo, BestKnown>>> FindBestAfter(
    Connection& db, const std::optional<BestKey>& after, int64_t limit);
absl::StatusOr<std::vector<ClassFacts>> FindClassFacts(Connection& db);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_BEST_QUERIES_H_
