// A session that does all that a server does with its log, with every call that
// changes a file failed in turn: alone, for good, half done, and with the power
// cut at it. After each the log opens without repair and holds exactly what was
// acknowledged.
#include <unistd.h>

#include <functional>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "storage/sqlite/migrations.h"
#include "storage/sqlite/record_store.h"
#include "storage/sqlite/sqlite_tuning_log.h"
#include "tests/storage/fault_vfs.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

// So that the session meets several checkpoints.
constexpr int kCheckpointPages = 12;

using Log = std::unique_ptr<TuningLog>;

absl::StatusOr<Log> Open(const std::string& path) {
  return sqlite::OpenSqliteLog(path, {.holder = "a test"},
                               {.checkpoint = kCheckpointPages});
}

// One call whose success is an acknowledgement.
using Step = std::function<absl::Status(TuningLog&)>;

v1::TrialResult Result(int ordinal, const WorkloadInfo& workload,
                       const std::string& schedule, int64_t time_ns) {
  v1::TrialResult result =
      OkResult(absl::StrCat("1/0/", ordinal), workload, schedule, time_ns);
  // A few records fill a page.
  result.set_detail(std::string(700, 'x'));
  return result;
}

// THE session. Batches are of several records, so that half of one would show.
std::vector<Step> Session() {
  const WorkloadInfo a = Matmul(8, 8, 8), b = Matmul(16, 8, 8);
  std::vector<Step> steps;
  const auto put = [&](const WorkloadInfo& w) {
    steps.push_back([w](TuningLog& log) { return log.PutWorkload(w); });
  };
  const auto append = [&](std::vector<v1::TrialResult> results) {
    steps.push_back([results = std::move(results)](TuningLog& log) {
      return log.Append(results, 7).status();
    });
  };
  const auto publish = [&](const v1::TrialResult& result, int64_t time_ns) {
    steps.push_back([verdict = Verdict(result, time_ns)](TuningLog& log) {
      return log.Publish(verdict, 9);
    });
  };
  put(a);
  put(b);
  steps.push_back([](TuningLog& log) {
    v1::SubmitJobRequest request;
    request.set_request_id("once");
    request.set_name("a job");
    return log.CreateJob(request, 5).status();
  });
  steps.push_back(
      [](TuningLog& log) { return log.ReserveOrdinals(1, 0, 100).status(); });
  int ordinal = 0;
  for (int round = 0; round < 6; ++round) {
    const WorkloadInfo& w = round % 2 == 0 ? a : b;
    std::vector<v1::TrialResult> batch;
    for (int i = 0; i < 5; ++i) {
      batch.push_back(
          Result(ordinal++, w, absl::StrCat("s", i), 1000 - 10 * round - i));
    }
    append(batch);
    steps.push_back([round](TuningLog& log) {
      v1::Job job;
      job.set_job_id(1);
      job.set_reason(absl::StrCat("round ", round));
      return log.SaveJob(job, std::string(500 * round, 'c'));
    });
    // The last is of a schedule that stays good.
    if (round % 2 == 1) publish(batch[round < 5 ? 2 : 3], 500 - round);
    append({batch[0], batch[4]});  // again: duplicates
    if (round == 3) {
      v1::TrialResult wrong = Failed(batch[2], v1::OUTCOME_WRONG_RESULT);
      wrong.mutable_spec()->set_trial_id("1/1/0");
      append({wrong, Result(ordinal++, w, "s9", 900)});
      steps.push_back(
          [](TuningLog& log) { return log.RebuildBest(nullptr).status(); });
    }
  }
  return steps;
}

// Everything that can be asked of a log, but for its name.
std::string StateOf(TuningLog& log) {
  std::string state;
  for (const WorkloadInfo& w : {Matmul(8, 8, 8), Matmul(16, 8, 8)}) {
    for (const StoredRecord& record : AllRecords(log, w)) {
      absl::StrAppend(&state, record.result.spec().trial_id(), " ",
                      Sha256Hex(record.result.SerializeAsString()), " ",
                      record.recorded_unix_ms, "\n");
    }
    const auto best = log.BestOfWorkload(w.key);
    EXPECT_OK(best);
    for (const BestKnown& row : *best) {
      absl::StrAppend(&state, Describe(row), "\n");
    }
  }
  const auto jobs = log.ListJobs();
  EXPECT_OK(jobs);
  for (const TuningLog::StoredJob& job : *jobs) {
    absl::StrAppend(&state, job.request.ShortDebugString(), " ",
                    job.job.ShortDebugString(), " ", job.checkpoint.size(),
                    "\n");
  }
  const auto ordinal = log.ReserveOrdinals(1, 0, 1);
  EXPECT_OK(ordinal);
  absl::StrAppend(&state, "next ordinal ", *ordinal, "\n");
  return state;
}

// The file of a log of the first version with some records.
std::string OldLog() {
  const TempDir dir("/dev/shm");
  const std::string path = dir.path() + "/log";
  {
    const auto db =
        sqlite::Connection::Open(path, sqlite::Connection::Mode::kCreate)
            .value();
    EXPECT_OK(sqlite::Migrate(*db, sqlite::Migrations().subspan(0, 1)));
    EXPECT_OK(db->Execute("PRAGMA journal_mode = WAL; BEGIN"));
    const WorkloadInfo workload = Matmul(16, 8, 8);
    EXPECT_OK(sqlite::PutWorkload(*db, workload));
    // By hand: today's code writes today's layout.
    EXPECT_OK(db->Execute("INSERT INTO cell VALUES (1, 1, 'zen4-2c', 1, 1)"));
    for (int i = 0; i < 20; ++i) {
      const sqlite::EncodedRecord record = sqlite::Encode(OkResult(
          absl::StrCat("0/0/", i), workload, absl::StrCat("s", i), 900 + i));
      EXPECT_OK(db->Run("INSERT OR IGNORE INTO context VALUES (1, ?, ?)",
                        sqlite::Blob{record.context_digest},
                        sqlite::Blob{record.context}));
      EXPECT_OK(db->Run(
          "INSERT INTO record VALUES (?, ?, 1, 1, ?, ?, ?, ?, ?, ?, ?, 3, ?)",
          i + 1, record.trial_id, record.job_id, record.outcome, record.kind,
          record.abandoned, record.time_ns, record.schedule_hash,
          sqlite::Blob{*record.binary_hash}, sqlite::Blob{record.body}));
    }
    EXPECT_OK(
        db->Execute("INSERT INTO best_known VALUES (1, 1, NULL); COMMIT"));
  }
  return ReadFile(path);
}

// What a session starts with and does.
struct Script {
  std::string before;  // bytes of the log's file; empty: there is none
  std::vector<Step> steps;
};

// What the log holds after the acknowledged steps, worked out without a fault.
std::string StateAfter(const Script& script, const std::vector<bool>& acked) {
  const TempDir dir("/dev/shm");
  if (!script.before.empty()) WriteFile(dir.path() + "/log", script.before);
  Log log = Open(dir.path() + "/log").value();
  for (size_t i = 0; i < acked.size(); ++i) {
    if (acked[i]) EXPECT_OK(script.steps[i](*log));
  }
  return StateOf(*log);
}

struct Variant {
  const char* name;
  FaultAction action;
  bool half = false;
  bool cut = false;  // the power goes at the end, or where the machine stops
  DiskModel::Loss loss = DiskModel::Loss::kEverything;
};

constexpr Variant kVariants[] = {
    {"one call fails", FaultAction::kFailCall},
    {"one call fails half done", FaultAction::kFailCall, true},
    {"one call fails, the power goes later", FaultAction::kFailCall, false,
     true},
    {"one call fails, the power goes later and leaves some",
     FaultAction::kFailCall, true, true, DiskModel::Loss::kSome},
    {"the process stops", FaultAction::kFailCalls},
    {"the power goes", FaultAction::kFailCalls, false, true},
    {"the power goes and leaves some", FaultAction::kFailCalls, false, true,
     DiskModel::Loss::kSome},
};

struct Outcome {
  std::vector<bool> acked;
  int64_t calls = 0;
  bool struck = false;
};

// The session under one fault; halfway the log is closed and opened again. What
// it leaves is as after a crash, so that nothing is closed in order.
Outcome RunSession(const Script& script, const std::string& path,
                   const Variant* variant, int64_t nth, uint64_t seed) {
  if (!script.before.empty()) WriteFile(path, script.before);
  const std::vector<Step>& session = script.steps;
  DiskModel model;
  const FaultVfs vfs(&model);
  Outcome outcome;
  outcome.acked.resize(session.size());
  Fault fault{.action = FaultAction::kFailCall, .nth = INT64_MAX};
  if (variant != nullptr) {
    fault = {.action = variant->action, .nth = nth, .half = variant->half};
  }
  FaultVfs::Arm(fault);
  Log log;
  for (size_t i = 0; i < session.size(); ++i) {
    if (i == session.size() / 2) log.reset();
    // A refused opening is tried again at the next step.
    if (log == nullptr) {
      auto opened = Open(path);
      if (!opened.ok()) continue;
      log = *std::move(opened);
    }
    const absl::Status status = session[i](*log);
    outcome.acked[i] = status.ok();
    if (variant == nullptr) EXPECT_OK(status);
  }
  outcome.struck = FaultVfs::Struck();
  const bool stops =
      variant != nullptr &&
      (variant->cut || variant->action == FaultAction::kFailCalls);
  if (stops && log != nullptr) {
    FaultVfs::Arm({.action = FaultAction::kFailCalls, .nth = 1});
  }
  log.reset();
  outcome.struck = outcome.struck || (!stops && FaultVfs::Struck());
  outcome.calls = FaultVfs::Seen();
  FaultVfs::Disarm();
  if (variant != nullptr && variant->cut) {
    Random random(seed);
    model.CutPower(variant->loss, random);
  }
  return outcome;
}

absl::Status CheckIntegrity(const std::string& path) {
  ASSIGN_OR_RETURN(
      const auto db,
      sqlite::Connection::Open(path, sqlite::Connection::Mode::kReadOnly));
  ASSIGN_OR_RETURN(sqlite::Statement check,
                   db->Query("PRAGMA integrity_check"));
  ASSIGN_OR_RETURN(const bool row, check.Step());
  if (row && check.Bytes(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(check.Text(0));
}

// The one step of a session that may be there although it was refused: what the
// fault hit. It failed after its last byte was written.
std::optional<size_t> FirstRefused(const std::vector<bool>& acked) {
  for (size_t i = 0; i < acked.size(); ++i) {
    if (!acked[i]) return i;
  }
  return std::nullopt;
}

void ExpectWhole(const Script& script, const std::string& path,
                 const Variant& variant, const Outcome& outcome) {
  auto log = Open(path);
  ASSERT_OK(log);
  const std::string state = StateOf(**log);
  std::vector<bool> acked = outcome.acked;
  std::string expected = StateAfter(script, acked);
  if (variant.action == FaultAction::kFailCalls && state != expected) {
    if (const auto refused = FirstRefused(acked)) {
      acked[*refused] = true;
      expected = StateAfter(script, acked);
    }
  }
  ASSERT_EQ(state, expected);
  ASSERT_OK((*log)->RebuildBest(nullptr));
  std::string rebuilt = StateOf(**log);
  // Only the ordinal has moved on.
  rebuilt.resize(rebuilt.rfind("next ordinal"));
  ASSERT_EQ(rebuilt, state.substr(0, state.rfind("next ordinal")));
  log->reset();
  ASSERT_OK(CheckIntegrity(path));
}

// Runs the script once for each variant of a fault at every `stride`th of its
// calls.
void FailEveryCall(const Script& script, int64_t stride) {
  int64_t calls = 0;
  {
    const TempDir dir("/dev/shm");
    const Outcome whole =
        RunSession(script, dir.path() + "/log", nullptr, 0, 0);
    ASSERT_FALSE(FirstRefused(whole.acked).has_value());
    calls = whole.calls;
  }
  int64_t sessions = 0, struck = 0, refused = 0, variant_number = 0;
  for (const Variant& variant : kVariants) {
    // Other calls for each variant.
    const int64_t first = 1 + variant_number++ * stride / std::size(kVariants);
    for (int64_t nth = first; nth <= calls; nth += stride) {
      SCOPED_TRACE(absl::StrCat(variant.name, ", call ", nth));
      const TempDir dir("/dev/shm");
      const std::string path = dir.path() + "/log";
      const Outcome outcome = RunSession(script, path, &variant, nth, nth);
      ++sessions;
      struck += outcome.struck;
      refused += FirstRefused(outcome.acked).has_value();
      ExpectWhole(script, path, variant, outcome);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  std::cout << "REGATTA_TEST_SCALE " << TestScale() << ": " << sessions
            << " sessions of " << calls << " calls, each with one of the "
            << std::size(kVariants) << " faults; " << struck << " met it, "
            << refused << " had a call refused\n";
  EXPECT_GT(struck, sessions * 9 / 10);
  EXPECT_GT(refused, sessions / 3);
}

int64_t Stride(double at_scale_1) {
  return std::max<int64_t>(1, static_cast<int64_t>(at_scale_1 / TestScale()));
}

TEST(SqlitePower, ALogHoldsWhatItAcknowledgedWhicheverCallFails) {
  FailEveryCall({.steps = Session()}, Stride(40));
}

TEST(SqlitePower, AnOlderLogIsMigratedWholeWhicheverCallFails) {
  std::vector<Step> steps = Session();
  steps.resize(6);
  FailEveryCall({.before = OldLog(), .steps = std::move(steps)}, Stride(20));
}

}  // namespace
}  // namespace regatta::testing
