#include "storage/sqlite/best_queries.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/robust_stats.h"
#include "base/status_macros.h"
#include "storage/shape_distance.h"
#include "storage/sqlite/record_codec.h"
#include "storage/sqlite/record_store.h"
#include "storage/time_interval.h"
#include "storage/validate.h"

namespace regatta::sqlite {
namespace {

// The part of a record that is in its context.
absl::StatusOr<v1::TrialResult> LoadContext(Connection& db, int64_t id) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Query("SELECT bytes FROM context WHERE id = ?", id));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  v1::TrialResult context;
  const std::string_view bytes = row ? find.Bytes(0) : std::string_view();
  if (!row ||
      !context.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(
        absl::StrCat("context ", id, " is missing or damaged"));
  }
  return context;
}

// Blocks and boards over all ok records of the best's schedule.
absl::Status CountEvidence(Connection& db, int64_t cell, BestKnown& best) {
  const v1::ScheduleText& schedule = best.record.result.spec().schedule();
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT trial_id, context_id, body FROM record "
               "WHERE cell_id = ? AND schedule_hash = ? AND outcome = 1",
               cell, ScheduleHash(schedule)));
  std::map<int64_t, v1::TrialResult> contexts;  // few
  std::set<std::string> boards;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) break;
    ASSIGN_OR_RETURN(const BodyGlance glance,
                     GlanceAtBody(find.Bytes(0), find.Bytes(2)));
    if (glance.schedule_text != schedule.text()) continue;
    auto [context, is_new] = contexts.try_emplace(find.Int(1));
    if (is_new) {
      ASSIGN_OR_RETURN(context->second, LoadContext(db, context->first));
    }
    const v1::ScheduleText& other = context->second.spec().schedule();
    if (other.space() != schedule.space() ||
        other.space_version() != schedule.space_version()) {
      continue;
    }
    best.samples += glance.kept_blocks;
    const std::string& board = context->second.device_id();
    if (!board.empty()) boards.insert(board);
  }
  best.boards = static_cast<int64_t>(boards.size());
  return absl::OkStatus();
}

// 0 when the default was never timed.
absl::StatusOr<int64_t> DefaultMedian(Connection& db, int64_t cell) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT time_ns FROM record WHERE cell_id = ? AND outcome = 1 "
               "AND kind = 1 AND abandoned = 0 AND time_ns > 0",
               cell));
  std::vector<double> times;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) break;
    times.push_back(static_cast<double>(find.Int(0)));
  }
  return times.empty() ? 0 : std::llround(Median(std::move(times)));
}

void SetInterval(BestKnown& best) {
  if (best.low_ns == 0) {
    const auto interval =
        TimeInterval(best.record.result)
            .value_or(std::make_pair(best.time_ns, best.time_ns));
    best.low_ns = std::min(interval.first, best.time_ns);
    best.high_ns = std::max(interval.second, best.time_ns);
  }
}

// REQUIRES: the cell has a best.
absl::StatusOr<BestKnown> LoadBest(Connection& db, int64_t cell) {
  BestKnown best;
  {
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT " REGATTA_RECORD_COLUMNS
                 ", w.key, c.device_class, c.threads, c.cache, c.imported, "
                 "r.time_ns, "
                 "p.id, "
                 "p.time_ns, p.low_ns, p.high_ns, p.default_ns, p.speedup, "
                 "p.speedup_low, p.speedup_high, p.unix_ms "
                 "FROM best_known b CROSS JOIN " REGATTA_RECORD_TABLES
                 " LEFT JOIN publication p ON p.id = b.publication_id "
                 "WHERE b.cell_id = ? AND r.id = b.record_id",
                 cell));
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) {
      return absl::DataLossError(
          "a best-known row points to a record that is missing");
    }
    ASSIGN_OR_RETURN(best.record, ReadRecord(find, 0));
    int i = kRecordColumns;
    best.key.workload_key = find.Text(i++);
    best.key.device_class = find.Text(i++);
    best.key.threads = static_cast<int>(find.Int(i++));
    best.key.cache = static_cast<v1::CacheState>(find.Int(i++));
    best.key.imported = find.Int(i++) != 0;
    best.time_ns = find.Int(i++);
    best.since_unix_ms = best.record.recorded_unix_ms;
    best.confirmed = !find.IsNull(i++);
    if (best.confirmed) {
      best.time_ns = find.Int(i++);
      best.low_ns = find.Int(i++);
      best.high_ns = find.Int(i++);
      best.default_ns = find.Int(i++);
      best.speedup = find.Real(i++);
      best.speedup_low = find.Real(i++);
      best.speedup_high = find.Real(i++);
      best.since_unix_ms = find.Int(i++);
    }
  }
  SetInterval(best);
  RETURN_IF_ERROR(CountEvidence(db, cell, best));
  if (best.default_ns == 0) {
    ASSIGN_OR_RETURN(best.default_ns, DefaultMedian(db, cell));
  }
  return best;
}

// Distance, workload key, workload id.
using Neighbour = std::tuple<double, std::string, int64_t>;

// Other shapes of the workload's structure, in no order.
absl::StatusOr<std::vector<Neighbour>> FindNeighbours(
    Connection& db, const WorkloadInfo& workload) {
  ASSIGN_OR_RETURN(Statement find,
                   db.Query("SELECT id, key, extents FROM workload "
                            "WHERE structure = ? AND key <> ?",
                            workload.structure, workload.key));
  std::vector<Neighbour> near;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return near;
    ASSIGN_OR_RETURN(const std::vector<int64_t> extents,
                     DecodeExtents(find.Bytes(2)));
    if (extents.size() != workload.extents.size()) continue;
    near.emplace_back(ShapeDistance(workload.extents, extents), find.Text(1),
                      find.Int(0));
  }
}

// The workload's cell of the class and policy of `key`; 0 when it has no best.
absl::StatusOr<int64_t> FindBestCell(Connection& db, int64_t workload_id,
                                     const BestKey& key) {
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT b.cell_id FROM cell c "
               "JOIN best_known b ON b.cell_id = c.id WHERE c.workload_id = ? "
               "AND c.device_class = ? AND c.threads = ? AND c.cache = ? "
               "AND c.imported = ?",
               workload_id, key.device_class, key.threads,
               static_cast<int>(key.cache), key.imported));
  ASSIGN_OR_RETURN(const bool row, find.Step());
  return row ? find.Int(0) : 0;
}

}  // namespace

absl::StatusOr<std::optional<BestKnown>> FindBest(Connection& db,
                                                  const BestKey& key) {
  int64_t cell = 0;
  {
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT b.cell_id FROM workload w "
                 "JOIN cell c ON c.workload_id = w.id "
                 "JOIN best_known b ON b.cell_id = c.id WHERE w.key = ? "
                 "AND c.device_class = ? AND c.threads = ? AND c.cache = ? "
                 "AND c.imported = ?",
                 key.workload_key, key.device_class, key.threads,
                 static_cast<int>(key.cache), key.imported));
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return std::optional<BestKnown>();
    cell = find.Int(0);
  }
  ASSIGN_OR_RETURN(BestKnown best, LoadBest(db, cell));
  return std::optional<BestKnown>(std::move(best));
}

absl::StatusOr<std::vector<BestKnown>> FindBestOfWorkload(
    Connection& db, std::string_view workload_key) {
  std::vector<int64_t> cells;
  {
    ASSIGN_OR_RETURN(
        Statement find,
        db.Query("SELECT b.cell_id FROM workload w "
                 "JOIN cell c ON c.workload_id = w.id "
                 "JOIN best_known b ON b.cell_id = c.id WHERE w.key = ? "
                 "ORDER BY c.device_class, c.threads, c.cache, c.imported",
                 workload_key));
    while (true) {
      ASSIGN_OR_RETURN(const bool row, find.Step());
      if (!row) break;
      cells.push_back(find.Int(0));
    }
  }
  std::vector<BestKnown> all;
  for (const int64_t cell : cells) {
    ASSIGN_OR_RETURN(BestKnown best, LoadBest(db, cell));
    all.push_back(std::move(best));
  }
  return all;
}

absl::StatusOr<std::vector<BestKnown>> FindBestOfNeighbours(
    Connection& db, const WorkloadInfo& workload, const BestKey& key,
    int limit) {
  std::vector<BestKnown> all;
  if (limit <= 0) return all;
  ASSIGN_OR_RETURN(std::vector<Neighbour> near, FindNeighbours(db, workload));
  // Most structures have far more shapes than are asked for, so only the
  // nearest are put in order and looked up.
  const auto farther = [](const Neighbour& a, const Neighbour& b) {
    return b < a;
  };
  std::make_heap(near.begin(), near.end(), farther);
  while (!near.empty() && static_cast<int>(all.size()) < limit) {
    std::pop_heap(near.begin(), near.end(), farther);
    const int64_t workload_id = std::get<2>(near.back());
    near.pop_back();
    ASSIGN_OR_RETURN(const int64_t cell, FindBestCell(db, workload_id, key));
    if (cell == 0) continue;
    ASSIGN_OR_RETURN(BestKnown best, LoadBest(db, cell));
    all.push_back(std::move(best));
  }
  return all;
}

absl::StatusOr<std::vector<std::pair<WorkloadInfo, BestKnown>>> FindBestAfter(
    Connection& db, const std::optional<BestKey>& after, int64_t limit) {
  // Before all keys, where there is none: threads are never negative.
  const BestKey from =
      after.value_or(BestKey{.workload_key = "", .threads = -1});
  std::vector<std::pair<WorkloadInfo, BestKnown>> page;
  ASSIGN_OR_RETURN(
      Statement find,
      db.Query("SELECT b.cell_id, w.key, w.text, w.family, w.structure, "
               "w.extents FROM workload w JOIN cell c ON c.workload_id = w.id "
               "JOIN best_known b ON b.cell_id = c.id "
               "WHERE w.key >= ?1 AND (w.key > ?1 OR "
               "(c.device_class, c.threads, c.cache, c.imported) > "
               "(?2, ?3, ?4, ?5)) "
               "ORDER BY w.key, c.device_class, c.threads, c.cache, "
               "c.imported LIMIT ?6",
               from.workload_key, from.device_class, from.threads,
               static_cast<int>(from.cache), from.imported, limit));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, find.Step());
    if (!row) return page;
    WorkloadInfo workload{.key = find.Text(1),
                          .text = find.Text(2),
                          .family = find.Text(3),
                          .structure = find.Text(4)};
    ASSIGN_OR_RETURN(workload.extents, DecodeExtents(find.Bytes(5)));
    ASSIGN_OR_RETURN(BestKnown best, LoadBest(db, find.Int(0)));
    page.emplace_back(std::move(workload), std::move(best));
  }
}

absl::StatusOr<std::vector<ClassFacts>> FindClassFacts(Connection& db) {
  std::vector<int64_t> newest;
  {
    ASSIGN_OR_RETURN(Statement find,
                     db.Query("SELECT max(b.record_id) FROM best_known b "
                              "JOIN cell c ON c.id = b.cell_id "
                              "WHERE c.imported = 0 GROUP BY c.device_class "
                              "ORDER BY c.device_class"));
    while (true) {
      ASSIGN_OR_RETURN(const bool row, find.Step());
      if (!row) break;
      newest.push_back(find.Int(0));
    }
  }
  std::vector<ClassFacts> facts;
  for (const int64_t id : newest) {
    ASSIGN_OR_RETURN(const StoredRecord record, GetRecord(db, id));
    const v1::TrialResult& result = record.result;
    facts.push_back({KeyOf(result).device_class, result.spec().target(),
                     result.environment().measure_protocol()});
  }
  return facts;
}

}  // namespace regatta::sqlite
