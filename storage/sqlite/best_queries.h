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
// As TuningLog::ForEachBest.
absl::Status VisitBest(
    Connection& db,
    const std::function<bool(const WorkloadInfo&, const BestKnown&)>& visit);
absl::StatusOr<std::vector<ClassFacts>> FindClassFacts(Connection& db);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_BEST_QUERIES_H_
