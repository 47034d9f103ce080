#include "storage/sqlite/integrity.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "storage/paced_progress.h"
#include "storage/sqlite/best_known.h"
#include "storage/sqlite/job_store.h"
#include "storage/sqlite/record_codec.h"
#include "storage/validate.h"

namespace regatta::sqlite {
namespace {

// What is wrong with pages is looked for no further than this, which leaves
// room to tell so.
constexpr int64_t kMaxOfPages = LogUpkeep::kMaxFindings - 1;

class Checker {
 public:
  Checker(Connection& db, const std::function<void(const LogFinding&)>& visit,
          const UpkeepProgress& progress, absl::Duration interval)
      : db_(db), visit_(visit), progress_(progress, interval) {}

  absl::StatusOr<LogCheck> Run() {
    ASSIGN_OR_RETURN(const ReadTransaction snapshot,
                     ReadTransaction::Begin(db_));
    // Goes before the transaction, whose end must not be stopped.
    const StepWatch watch(db_, [this] { return progress_.GoOn(); });
    const absl::Status status = CheckAll();
    if (absl::IsCancelled(status)) return Stopped();
    RETURN_IF_ERROR(status);
    return check_;
  }

 private:
  absl::Status CheckAll() {
    RETURN_IF_ERROR(CheckPages());
    RETURN_IF_ERROR(CheckWorkloads());
    RETURN_IF_ERROR(CheckContexts());
    RETURN_IF_ERROR(CheckJobs());
    RETURN_IF_ERROR(CheckRecords());
    RETURN_IF_ERROR(CheckOrdinals());
    RETURN_IF_ERROR(CheckPublications());
    return CheckBestKnown();
  }

  void Found(std::string where, std::string what,
             FindingKind kind = FindingKind::kDamage) {
    if (kind == FindingKind::kDamage) ++check_.damage;
    if (kind == FindingKind::kDerived) ++check_.derived;
    if (++check_.findings > LogUpkeep::kMaxFindings) return;
    // Both quote rows, which may hold any bytes.
    visit_({Utf8(where), Utf8(what), kind});
  }

  // What was stored so; see FindingKind::kContent.
  void Disagrees(std::string where, absl::string_view what) {
    Found(std::move(where),
          absl::StrCat("warning: ", std::string(what),
                       "; the file is as it was written"),
          FindingKind::kContent);
  }

  absl::Status Begin(const char* phase, int64_t total = 0) {
    return progress_.Begin(phase, total) ? absl::OkStatus() : Stopped();
  }

  static absl::Status Stopped() {
    return absl::CancelledError("the check was stopped");
  }

  // Calls `row` for every row of a statement that takes no arguments.
  template <typename Row>
  absl::Status Each(const char* sql, const Row& row) {
    ASSIGN_OR_RETURN(Statement find, db_.Query(sql));
    while (true) {
      ASSIGN_OR_RETURN(const bool more, find.Step());
      if (!more) return absl::OkStatus();
      RETURN_IF_ERROR(row(find));
    }
  }

  absl::Status CheckPages() {
    RETURN_IF_ERROR(Begin("checking the file's pages"));
    int64_t wrong = 0;
    RETURN_IF_ERROR(
        Each(absl::StrCat("PRAGMA integrity_check(", kMaxOfPages, ")").c_str(),
             [&](const Statement& row) {
               if (row.Bytes(0) == "ok") return absl::OkStatus();
               ++wrong;
               Found("the file", row.Text(0));
               return absl::OkStatus();
             }));
    if (wrong >= kMaxOfPages) {
      Found("the file", "its pages were read no further than this");
    }
    return absl::OkStatus();
  }

  absl::Status CheckWorkloads() {
    return Each(
        "SELECT key, text, extents FROM workload", [&](const Statement& row) {
          WorkloadInfo workload{.key = row.Text(0), .text = row.Text(1)};
          const auto extents = DecodeExtents(row.Bytes(2));
          const std::string where = absl::StrCat("workload ", workload.key);
          if (!extents.ok()) {
            Found(where, std::string(extents.status().message()));
            return absl::OkStatus();
          }
          workload.extents = *extents;
          const absl::Status status = ValidateWorkload(workload);
          if (!status.ok()) Disagrees(where, status.message());
          return absl::OkStatus();
        });
  }

  absl::Status CheckContexts() {
    return Each("SELECT id, digest, bytes FROM context",
                [&](const Statement& row) {
                  if (Sha256({row.Bytes(2)}) != row.Bytes(1)) {
                    Found(absl::StrCat("context ", row.Int(0)),
                          "its bytes do not have its digest");
                  }
                  return absl::OkStatus();
                });
  }

  absl::Status CheckJobs() {
    return Each("SELECT id, request, status FROM job",
                [&](const Statement& row) {
                  const int64_t id = row.Int(0);
                  jobs_.push_back(id);
                  v1::SubmitJobRequest request;
                  v1::Job job;
                  if (!request.ParseFromString(row.Text(1)) ||
                      !job.ParseFromString(row.Text(2))) {
                    Found(absl::StrCat("job ", id), "its bytes are damaged");
                  }
                  return absl::OkStatus();
                });
  }

  absl::Status CheckRecords() {
    std::sort(jobs_.begin(), jobs_.end());
    ASSIGN_OR_RETURN(const int64_t total,
                     db_.Number("SELECT count(*) FROM record"));
    RETURN_IF_ERROR(Begin("reading records", total));
    return Each(
        "SELECT r.id, r.trial_id, x.bytes, r.body, r.binary_hash, r.job_id, "
        "r.outcome, r.kind, r.abandoned, r.time_ns, r.schedule_hash, "
        "w.key, c.device_class, c.threads, c.cache, c.imported "
        "FROM record r LEFT JOIN context x ON x.id = r.context_id "
        "LEFT JOIN cell c ON c.id = r.cell_id "
        "LEFT JOIN workload w ON w.id = c.workload_id ORDER BY r.id",
        [&](const Statement& row) {
          CheckRecord(row);
          progress_.Done(++check_.records);
          return absl::OkStatus();
        });
  }

  void CheckRecord(const Statement& row) {
    const std::string where =
        absl::StrCat("record ", row.Int(0), " (trial ", row.Text(1), ")");
    if (row.IsNull(2)) return Found(where, "its context is missing");
    if (row.IsNull(11)) return Found(where, "its workload is missing");
    std::optional<std::string_view> hash;
    if (!row.IsNull(4)) hash = row.Bytes(4);
    const auto result = Decode(row.Bytes(1), row.Bytes(2), row.Bytes(3), hash);
    if (!result.ok()) {
      return Found(where, std::string(result.status().message()));
    }
    if (const absl::Status status = ValidateResult(*result); !status.ok()) {
      Disagrees(where, status.message());
    }
    CheckColumns(row, where, *result);
    if (row.Int(15) == 0) CheckIdentity(where, *result);
  }

  void CheckColumns(const Statement& row, const std::string& where,
                    const v1::TrialResult& result) {
    const EncodedRecord expected = Encode(result);
    if (expected.body != row.Bytes(3)) {
      Found(where, "its bytes are not as they are written");
    }
    const BestKey cell{.workload_key = row.Text(11),
                       .device_class = row.Text(12),
                       .threads = static_cast<int>(row.Int(13)),
                       .cache = static_cast<v1::CacheState>(row.Int(14)),
                       .imported = row.Int(15) != 0};
    if (expected.key != cell) {
      Found(where, absl::StrCat("it stands under another key than its own: ",
                                cell.workload_key, " on ", cell.device_class,
                                cell.imported ? " (imported)" : "",
                                " instead of ", expected.key.workload_key,
                                " on ", expected.key.device_class));
    }
    const std::pair<const char*, std::pair<int64_t, int64_t>> columns[] = {
        {"job_id", {row.Int(5), expected.job_id}},
        {"outcome", {row.Int(6), expected.outcome}},
        {"kind", {row.Int(7), expected.kind}},
        {"abandoned", {row.Int(8), expected.abandoned}},
        {"time_ns", {row.Int(9), expected.time_ns}},
        {"schedule_hash", {row.Int(10), expected.schedule_hash}}};
    for (const auto& [name, values] : columns) {
      if (values.first == values.second) continue;
      Found(where, absl::StrCat("its column ", name, " is ", values.first,
                                ", its bytes say ", values.second));
    }
  }

  // Ids are handed out by job, task and ordinal: what has an id must lie below
  // what will be handed out next.
  void CheckIdentity(const std::string& where, const v1::TrialResult& result) {
    const v1::TrialSpec& spec = result.spec();
    int64_t job = 0, task = 0, ordinal = 0;
    const std::vector<std::string> parts = absl::StrSplit(spec.trial_id(), '/');
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &job) ||
        !absl::SimpleAtoi(parts[1], &task) ||
        !absl::SimpleAtoi(parts[2], &ordinal)) {
      return Disagrees(where,
                       "its trial id is not of the form JOB/TASK/ORDINAL");
    }
    if (job != spec.job_id() || task != spec.task() ||
        ordinal != spec.ordinal()) {
      Disagrees(where, absl::StrCat("its trial id is not that of job ",
                                    spec.job_id(), ", task ", spec.task(),
                                    ", ordinal ", spec.ordinal()));
    }
    if (!std::binary_search(jobs_.begin(), jobs_.end(), job)) {
      Found(where, absl::StrCat("its job ", job, " is missing"));
    }
    int64_t& highest = highest_.try_emplace({job, task}, ordinal).first->second;
    highest = std::max(highest, ordinal);
  }

  absl::Status CheckOrdinals() {
    for (const auto& [task, highest] : highest_) {
      ASSIGN_OR_RETURN(
          const int64_t free,
          NextOrdinal(db_, task.first, static_cast<int>(task.second)));
      if (free > highest) continue;
      Found(absl::StrCat("job ", task.first, ", task ", task.second),
            absl::StrCat("ordinal ", free,
                         " would be handed out next, but a record has ordinal ",
                         highest));
    }
    return absl::OkStatus();
  }

  absl::Status CheckPublications() {
    return Each(
        "SELECT p.id, p.time_ns, p.low_ns, p.high_ns, p.default_ns, "
        "r.trial_id, r.cell_id = p.cell_id, r.outcome, r.abandoned, r.time_ns, "
        "w.key, c.device_class, c.threads, c.cache FROM publication p "
        "LEFT JOIN record r ON r.id = p.record_id "
        "LEFT JOIN cell c ON c.id = p.cell_id "
        "LEFT JOIN workload w ON w.id = c.workload_id",
        [&](const Statement& row) {
          const std::string where = absl::StrCat("publication ", row.Int(0));
          if (row.IsNull(5) || row.IsNull(10)) {
            Found(where, "its record or workload is missing");
            return absl::OkStatus();
          }
          const Publication publication{
              .key = {.workload_key = row.Text(10),
                      .device_class = row.Text(11),
                      .threads = static_cast<int>(row.Int(12)),
                      .cache = static_cast<v1::CacheState>(row.Int(13))},
              .trial_id = row.Text(5),
              .time_ns = row.Int(1),
              .low_ns = row.Int(2),
              .high_ns = row.Int(3),
              .default_ns = row.Int(4)};
          const absl::Status status = ValidatePublication(publication);
          if (!status.ok()) Disagrees(where, status.message());
          if (row.Int(6) == 0) {
            Found(where, "its trial is of another key");
          } else if (row.Int(7) != v1::OUTCOME_OK || row.Int(8) != 0 ||
                     row.Int(9) <= 0) {
            Found(where, "its trial was not verified and timed to its end");
          }
          return absl::OkStatus();
        });
  }

  // Derives the view into a temporary table, which hides that of the file from
  // the statements that rebuild it.
  absl::Status CheckBestKnown() {
    RETURN_IF_ERROR(Begin("deriving best-known again"));
    std::string layout;
    RETURN_IF_ERROR(
        Each("SELECT sql FROM main.sqlite_schema "
             "WHERE type = 'table' AND name = 'best_known'",
             [&](const Statement& row) {
               layout = row.Text(0);
               return absl::OkStatus();
             }));
    constexpr std::string_view kCreate = "CREATE TABLE ";
    if (layout.compare(0, kCreate.size(), kCreate) != 0) {
      Found("best-known", "the table is missing");
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(db_.Execute(
        absl::StrCat("CREATE TEMP TABLE ", layout.substr(kCreate.size()))));
    RETURN_IF_ERROR(DeriveAllBest(db_));
    const auto differs = [&](const char* what) {
      return [this, what](const Statement& row) {
        Found(absl::StrCat("best-known of ", row.Text(0), " on ", row.Text(1),
                           ", ", row.Int(2), " thread(s)"),
              what, FindingKind::kDerived);
        return absl::OkStatus();
      };
    };
    RETURN_IF_ERROR(
        Each("SELECT w.key, c.device_class, c.threads FROM ("
             "SELECT * FROM temp.best_known EXCEPT "
             "SELECT * FROM main.best_known) b "
             "LEFT JOIN cell c ON c.id = b.cell_id "
             "LEFT JOIN workload w ON w.id = c.workload_id",
             differs("what is stored is not what the records say; "
                     "`regatta log rebuild` derives it again")));
    return Each(
        "SELECT w.key, c.device_class, c.threads "
        "FROM main.best_known b "
        "LEFT JOIN cell c ON c.id = b.cell_id "
        "LEFT JOIN workload w ON w.id = c.workload_id "
        "WHERE b.cell_id NOT IN (SELECT cell_id FROM temp.best_known)",
        differs("it is stored, but no record may be the best; "
                "`regatta log rebuild` derives it again"));
  }

  Connection& db_;
  const std::function<void(const LogFinding&)>& visit_;
  PacedProgress progress_;
  LogCheck check_;
  std::vector<int64_t> jobs_;
  std::map<std::pair<int64_t, int64_t>, int64_t> highest_;  // by job and task
};

}  // namespace

absl::StatusOr<LogCheck> CheckIntegrity(
    Connection& db, const std::function<void(const LogFinding&)>& visit,
    const UpkeepProgress& progress, absl::Duration interval) {
  return Checker(db, visit, progress, interval).Run();
}

}  // namespace regatta::sqlite
