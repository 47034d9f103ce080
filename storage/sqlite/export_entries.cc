// SqliteExchange::Export.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sqlite/exchange.h"
#include "storage/sqlite/read_again.h"
#include "storage/sqlite/record_store.h"

namespace regatta::sqlite {
namespace {

// Rows that are read at a time, and held in memory.
constexpr int64_t kPageRows = 256;

// The last row of each table that belongs to the export. Rows are only added,
// and a publication comes after its record: those up to the marks fit together
// without holding a transaction open meanwhile.
struct Marks {
  int64_t publication = 0, record = 0, workload = 0, job = 0, imported_job = 0;
};

// Trials of this log are named by their id alone in it.
std::string FullName(const std::string& log_id, const std::string& trial_id) {
  return trial_id.find(':') == std::string::npos
             ? absl::StrCat(log_id, ":", trial_id)
             : trial_id;
}

class Exporter {
 public:
  Exporter(std::string log_id, ReaderPool& readers,
           const std::function<bool(const v1::LogEntry&)>& visit)
      : log_id_(std::move(log_id)), readers_(readers), visit_(visit) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Begin());
    RETURN_IF_ERROR(
        Each("SELECT id, key, text, family, structure, extents FROM workload "
             "WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
             marks_.workload, FillWorkload));
    RETURN_IF_ERROR(
        Each("SELECT id, created_unix_ms, request FROM job "
             "WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
             marks_.job, [this](const Statement& row, v1::LogEntry* entry) {
               entry->mutable_job()->set_log_id(log_id_);
               entry->mutable_job()->set_job_id(row.Int(0));
               return FillJob(row, 1, entry);
             }));
    RETURN_IF_ERROR(Each(
        "SELECT id, log_id, job_id, created_unix_ms, request FROM imported_job "
        "WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
        marks_.imported_job, [](const Statement& row, v1::LogEntry* entry) {
          entry->mutable_job()->set_log_id(row.Text(1));
          entry->mutable_job()->set_job_id(row.Int(2));
          return FillJob(row, 3, entry);
        }));
    RETURN_IF_ERROR(Each(
        "SELECT r.id, " REGATTA_RECORD_COLUMNS " FROM " REGATTA_RECORD_TABLES
        " WHERE r.id > ? AND r.id <= ? ORDER BY r.id LIMIT ?",
        marks_.record, [this](const Statement& row, v1::LogEntry* entry) {
          return FillRecord(row, entry);
        }));
    RETURN_IF_ERROR(Each(
        "SELECT p.id, r.trial_id, w.key, c.device_class, c.threads, c.cache, "
        "p.time_ns, p.low_ns, p.high_ns, p.default_ns, p.speedup, "
        "p.speedup_low, p.speedup_high, p.job_id, p.unix_ms "
        "FROM publication p JOIN record r ON r.id = p.record_id "
        "JOIN cell c ON c.id = p.cell_id "
        "JOIN workload w ON w.id = c.workload_id "
        "WHERE p.id > ? AND p.id <= ? ORDER BY p.id LIMIT ?",
        marks_.publication, [this](const Statement& row, v1::LogEntry* entry) {
          return FillPublication(row, entry);
        }));
    if (stopped_) return absl::OkStatus();
    v1::LogEntry end;
    end.mutable_end()->set_entries(entries_);
    visit_(end);
    return absl::OkStatus();
  }

 private:
  absl::Status Begin() {
    v1::LogEntry entry;
    v1::LogHead& head = *entry.mutable_log();
    ASSIGN_OR_RETURN(marks_, ReadAgain(readers_, FindMarks));
    // Rows are never removed: the last id is their number.
    head.set_log_id(log_id_);
    head.set_workloads(marks_.workload);
    head.set_jobs(marks_.job + marks_.imported_job);
    head.set_records(marks_.record);
    head.set_publications(marks_.publication);
    Emit(entry);
    return absl::OkStatus();
  }

  static absl::StatusOr<Marks> FindMarks(Connection& db) {
    Marks marks;
    ASSIGN_OR_RETURN(marks.publication,
                     db.Number("SELECT coalesce(max(id), 0) FROM publication"));
    ASSIGN_OR_RETURN(marks.record,
                     db.Number("SELECT coalesce(max(id), 0) FROM record"));
    ASSIGN_OR_RETURN(marks.workload,
                     db.Number("SELECT coalesce(max(id), 0) FROM workload"));
    ASSIGN_OR_RETURN(marks.job,
                     db.Number("SELECT coalesce(max(id), 0) FROM job"));
    ASSIGN_OR_RETURN(
        marks.imported_job,
        db.Number("SELECT coalesce(max(id), 0) FROM imported_job"));
    return marks;
  }

  void Emit(const v1::LogEntry& entry) {
    ++entries_;
    stopped_ = !visit_(entry);
  }

  // Emits an entry for each row up to `last`; the first column is the id. No
  // connection is held while `visit_` runs: it may take its time.
  template <typename Fill>
  absl::Status Each(const char* sql, int64_t last, const Fill& fill) {
    int64_t after = 0;
    while (!stopped_ && after < last) {
      using Page = std::vector<v1::LogEntry>;
      int64_t end = after;
      const auto read = [&](Connection& db) -> absl::StatusOr<Page> {
        Page rows;
        ASSIGN_OR_RETURN(Statement find, db.Query(sql, after, last, kPageRows));
        while (true) {
          ASSIGN_OR_RETURN(const bool more, find.Step());
          if (!more) return rows;
          end = find.Int(0);
          RETURN_IF_ERROR(fill(find, &rows.emplace_back()));
        }
      };
      ASSIGN_OR_RETURN(const Page page, ReadAgain(readers_, read));
      if (page.empty()) break;
      after = end;
      for (const v1::LogEntry& entry : page) {
        if (stopped_) break;
        Emit(entry);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status FillWorkload(const Statement& row, v1::LogEntry* entry) {
    v1::LoggedWorkload& workload = *entry->mutable_workload();
    workload.set_key(row.Text(1));
    workload.set_text(row.Text(2));
    workload.set_family(row.Text(3));
    workload.set_structure(row.Text(4));
    ASSIGN_OR_RETURN(const std::vector<int64_t> extents,
                     DecodeExtents(row.Bytes(5)));
    workload.mutable_extents()->Add(extents.begin(), extents.end());
    return absl::OkStatus();
  }

  static absl::Status FillJob(const Statement& row, int first,
                              v1::LogEntry* entry) {
    v1::LoggedJob& job = *entry->mutable_job();
    job.set_created_unix_ms(row.Int(first));
    if (!job.mutable_request()->ParseFromString(row.Text(first + 1))) {
      return absl::DataLossError(absl::StrCat(
          "job ", job.job_id(), " cannot be read: its bytes are damaged"));
    }
    return absl::OkStatus();
  }

  absl::Status FillRecord(const Statement& row, v1::LogEntry* entry) const {
    ASSIGN_OR_RETURN(StoredRecord stored, ReadRecord(row, 1));
    v1::LoggedRecord& record = *entry->mutable_record();
    *record.mutable_result() = std::move(stored.result);
    record.set_recorded_unix_ms(stored.recorded_unix_ms);
    v1::TrialSpec& spec = *record.mutable_result()->mutable_spec();
    spec.set_trial_id(FullName(log_id_, spec.trial_id()));
    return absl::OkStatus();
  }

  absl::Status FillPublication(const Statement& row,
                               v1::LogEntry* entry) const {
    v1::LoggedPublication& to = *entry->mutable_publication();
    to.set_trial_id(FullName(log_id_, row.Text(1)));
    to.set_workload_key(row.Text(2));
    to.set_device_class(row.Text(3));
    to.mutable_policy()->set_threads(static_cast<int32_t>(row.Int(4)));
    to.mutable_policy()->set_cache(static_cast<v1::CacheState>(row.Int(5)));
    to.set_time_ns(row.Int(6));
    to.set_low_ns(row.Int(7));
    to.set_high_ns(row.Int(8));
    to.set_default_ns(row.Int(9));
    to.set_speedup(row.Real(10));
    to.set_speedup_low(row.Real(11));
    to.set_speedup_high(row.Real(12));
    to.set_job_id(row.Int(13));
    to.set_unix_ms(row.Int(14));
    return absl::OkStatus();
  }

  const std::string log_id_;
  ReaderPool& readers_;
  const std::function<bool(const v1::LogEntry&)>& visit_;
  Marks marks_;
  int64_t entries_ = 0;
  bool stopped_ = false;
};

}  // namespace

absl::Status SqliteExchange::Export(
    const std::function<bool(const v1::LogEntry&)>& visit) const {
  return Exporter(log_id_, *readers_, visit).Run();
}

}  // namespace regatta::sqlite
