// The Nth write or sync fails, at every N: what was acknowledged stays, what
// was refused is not there, and the log goes on once the fault is over.
#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/storage/fault_vfs.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

using ::testing::ElementsAre;

struct Case {
  std::string name;
  FaultAction action;
  int code;
  absl::StatusCode expected;
};

const Case kCases[] = {
    {"disk full", FaultAction::kFailWrites, SQLITE_FULL,
     absl::StatusCode::kResourceExhausted},
    {"write error", FaultAction::kFailWrites, SQLITE_IOERR_WRITE,
     absl::StatusCode::kUnavailable},
    {"sync error", FaultAction::kFailSyncs, SQLITE_IOERR_FSYNC,
     absl::StatusCode::kUnavailable},
};

std::set<std::string> IdSet(const TuningLog& log,
                            const WorkloadInfo& workload) {
  const auto ids = TrialIds(AllRecords(log, workload));
  const std::set<std::string> set(ids.begin(), ids.end());
  EXPECT_EQ(set.size(), ids.size()) << "a trial is stored twice";
  return set;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(SqliteFault, AFailedAppendIsRefusedWholeAndTheLogStaysReadable) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  int struck = 0;
  for (const Case& c : kCases) {
    const FaultVfs vfs;
    const TempDir dir;
    const std::string path = dir.path() + "/log";
    auto log = OpenTuningLog(path);
    ASSERT_OK(log);
    ASSERT_OK((*log)->PutWorkload(workload));
    std::set<std::string> acked;
    for (int nth = 1; nth <= 12; ++nth) {
      SCOPED_TRACE(absl::StrCat(c.name, " ", nth));
      const auto result = [&](int i) {
        return OkResult(absl::StrCat(nth, "/0/", i), workload, "s", 1000 - nth);
      };
      ASSERT_OK((*log)->Append({result(0)}, 1));
      acked.insert(result(0).spec().trial_id());
      FaultVfs::Arm({.action = c.action, .nth = nth, .code = c.code});
      const auto refused = (*log)->Append({result(1), result(2)}, 1);
      if (FaultVfs::Struck()) {
        ++struck;
        EXPECT_EQ(refused.status().code(), c.expected)
            << refused.status().ToString();
        EXPECT_THAT(std::string(refused.status().message()),
                    ::testing::HasSubstr(path));
      } else {
        ASSERT_OK(refused);
        acked.insert(result(1).spec().trial_id());
        acked.insert(result(2).spec().trial_id());
      }
      // With the fault still there.
      EXPECT_EQ(IdSet(**log, workload), acked);
      EXPECT_EQ((*log)->CountRecords().value(),
                static_cast<int64_t>(acked.size()));
      EXPECT_OK((*log)->Best(KeyFor(workload)));
      FaultVfs::Disarm();
      EXPECT_OK((*log)->Append({result(3)}, 1));
      acked.insert(result(3).spec().trial_id());
    }
    const std::string best = Describe(**(*log)->Best(KeyFor(workload)));
    log->reset();
    log = OpenTuningLog(path);
    ASSERT_OK(log);
    EXPECT_EQ(IdSet(**log, workload), acked);
    ASSERT_OK((*log)->RebuildBest(nullptr));
    EXPECT_EQ(Describe(**(*log)->Best(KeyFor(workload))), best);
  }
  EXPECT_GT(struck, 15);
}

TEST(SqliteFault, AFailedCreationLeavesNothing) {
  for (const Case& c : kCases) {
    const FaultVfs vfs;
    bool created = false;
    int refusals = 0;
    for (int nth = 1; nth < 200 && !created; ++nth) {
      SCOPED_TRACE(absl::StrCat(c.name, " ", nth));
      const TempDir dir;
      const std::string path = dir.path() + "/log";
      FaultVfs::Arm({.action = c.action, .nth = nth, .code = c.code});
      const auto log = OpenTuningLog(path);
      created = log.ok();
      if (!created) {
        ++refusals;
        EXPECT_EQ(log.status().code(), c.expected) << log.status().ToString();
        EXPECT_THAT(FilesIn(dir.path()), ElementsAre());
      }
      FaultVfs::Disarm();
      EXPECT_OK(OpenTuningLog(created ? path + "2" : path));
    }
    EXPECT_TRUE(created);
    EXPECT_GT(refusals, 2);
  }
}

TEST(SqliteFault, ACheckpointThatFailsLosesNothingAndIsMadeUpLater) {
  const FaultVfs vfs;
  const TempDir dir;
  const std::string path = dir.path() + "/log";
  const WorkloadInfo workload = Matmul(8, 8, 8);
  auto log = OpenTuningLog(path);
  ASSERT_OK(log);
  ASSERT_OK((*log)->PutWorkload(workload));
  // Records of a page each: two batches exceed what a checkpoint waits for.
  const auto append = [&](int from) {
    std::vector<v1::TrialResult> results;
    for (int i = from; i < from + 600; ++i) {
      results.push_back(OkResult(absl::StrCat("1/0/", i), workload, "s", 100));
      results.back().set_detail(std::string(4000, 'x'));
    }
    EXPECT_OK((*log)->Append(results, 1));
  };
  FaultVfs::Arm({.action = FaultAction::kFailWrites,
                 .nth = 100,
                 .code = SQLITE_FULL,
                 .file_kinds = SQLITE_OPEN_MAIN_DB});
  append(0);
  append(600);
  append(1200);
  // A write takes turns with the checkpoint on one thread: once this one is
  // through, the checkpoint after the last batch has been tried.
  ASSERT_OK((*log)->ReserveOrdinals(1, 0, 1));
  EXPECT_TRUE(FaultVfs::Struck());
  EXPECT_EQ(AllRecords(**log, workload).size(), 1800u);
  const auto file_size = [&] { return std::filesystem::file_size(path); };
  EXPECT_LT(file_size(), 1u << 20);
  FaultVfs::Disarm();
  ASSERT_OK((*log)->ReserveOrdinals(1, 0, 1));
  ASSERT_OK((*log)->ReserveOrdinals(1, 0, 1));
  EXPECT_GT(file_size(), 6u << 20);
  log->reset();
  EXPECT_THAT(FilesIn(dir.path()), ElementsAre("log", "log.lock"));
  log = OpenTuningLog(path);
  ASSERT_OK(log);
  EXPECT_EQ(AllRecords(**log, workload).size(), 1800u);
}

TEST(SqliteFault, AppendIsSyncedWhenItReturns) {
  const FaultVfs vfs;
  const TempDir dir;
  const WorkloadInfo workload = Matmul(8, 8, 8);
  const auto log = OpenTuningLog(dir.path() + "/log");
  ASSERT_OK(log);
  ASSERT_OK((*log)->PutWorkload(workload));
  for (int i = 0; i < 5; ++i) {
    const int64_t before = FaultVfs::WalSyncs();
    ASSERT_OK((*log)->Append(
        {OkResult(absl::StrCat("1/0/", i), workload, "s", 100)}, 1));
    EXPECT_GT(FaultVfs::WalSyncs(), before);
    EXPECT_EQ(FaultVfs::UnsyncedWalWrites(), 0);
  }
}

}  // namespace
}  // namespace regatta::testing
