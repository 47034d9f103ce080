// Derives the view best_known again in steps, between which others write.
//
// A step takes some cells: what is best by the rule is found on a reader, which
// takes as long as the cells have records; the writer then sets the rows that
// differ and takes into account what came meanwhile. So the view is never
// empty, each row is what it was or what it should be, wherever the work ends,
// and the writer is held for some thousand look-ups at a time. A step that is
// asked to end its state begins anew, with a quarter of the cells.
#ifndef REGATTA_STORAGE_SQLITE_REBUILD_BEST_H_
#define REGATTA_STORAGE_SQLITE_REBUILD_BEST_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/log_upkeep.h"
#include "storage/paced_progress.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/reader_pool.h"

namespace regatta::sqlite {

// Cells of a step.
constexpr int64_t kRebuildCells = 256;

// `write` runs an operation on the writer's thread, durably. Returns how many
// rows were not what they are now. Cancelled: `progress`, which hears of keys
// every `interval`, stopped it; what was done stays. Aborted: a step of one
// cell was asked to end.
absl::StatusOr<int64_t> RebuildBest(
    ReaderPool& readers,
    const std::function<
        absl::Status(const std::function<absl::Status(Connection&)>&)>& write,
    const UpkeepProgress& progress, int64_t cells_per_step = kRebuildCells,
    absl::Duration interval = PacedProgress::kInterval);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_REBUILD_BEST_H_
