// 47: a log that goes bad while it is served.
#include "server/log_inspection.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kPageBytes = 4096;

class LogInspectionTest : public ::testing::Test {
 protected:
  LogInspectionTest() : path_(dir_.path() + "/log") {
    Open();
    EXPECT_OK(log_->PutWorkload(workload_));
    EXPECT_OK(log_->CreateJob({}, 1));
    EXPECT_OK(log_->ReserveOrdinals(1, 0, 1000));
    std::vector<v1::TrialResult> results;
    for (int i = 0; i < 200; ++i) results.push_back(Trial(i));
    EXPECT_OK(log_->Append(results, 1));
    // Everything from the write-ahead log into the file.
    log_.reset();
    Open();
  }
  void Open() { log_ = *OpenTuningLog(path_); }
  v1::TrialResult Trial(int ordinal) {
    auto result =
        OkResult(absl::StrCat("1/0/", ordinal), workload_,
                 absl::StrCat("tile{mi=", ordinal, "}"), 1000 + ordinal);
    result.mutable_spec()->set_ordinal(ordinal);
    return result;
  }
  // One bit of the served file.
  void Flip(int64_t offset) {
    const UniqueFd file(open(path_.c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    ASSERT_EQ(pread(file.get(), &byte, 1, offset), 1);
    byte = static_cast<char>(byte ^ 4);
    ASSERT_EQ(pwrite(file.get(), &byte, 1, offset), 1);
  }
  int64_t Pages() const {
    return static_cast<int64_t>(std::filesystem::file_size(path_)) / kPageBytes;
  }
  std::string Sealed() {
    const auto status = log_->Append({Trial(500)}, 2).status();
    return status.ok() ? "" : std::string(status.message());
  }

  TempDir dir_;
  std::string path_;
  const WorkloadInfo workload_ = Matmul(8, 8, 8);
  std::unique_ptr<TuningLog> log_;
};

TEST_F(LogInspectionTest, AWholeLogStaysOpen) {
  LogInspection inspection(log_.get(), path_, absl::ZeroDuration());
  EXPECT_OK(inspection.Inspect());
  EXPECT_EQ(Sealed(), "");
}

// The header of a page: what kind it is, how many cells it has and where.
TEST_F(LogInspectionTest, ABitThatFlipsInAnyPageClosesTheLogForWriting) {
  const std::string backup = dir_.path() + "/backup";
  ASSERT_OK(log_->upkeep().Backup(backup, nullptr));
  log_.reset();
  const std::string whole = ReadFile(path_);
  for (int64_t page = 1; page < Pages(); ++page) {
    SCOPED_TRACE(absl::StrCat("page ", page + 1));
    WriteFile(path_, whole);
    Open();
    Flip(page * kPageBytes + 3 + page % 3);
    LogInspection inspection(log_.get(), path_, absl::ZeroDuration());
    const absl::Status found = inspection.Inspect();
    EXPECT_EQ(found.code(), absl::StatusCode::kDataLoss) << found;
    EXPECT_THAT(std::string(found.message()),
                HasSubstr(absl::StrCat("regatta log restore BACKUP --log ",
                                       path_, " --force")));
    // Every write says why.
    EXPECT_EQ(Sealed(), found.message());
    EXPECT_EQ(log_->CreateJob({}, 1).status(), found);
    EXPECT_EQ(log_->PutWorkload(Matmul(4, 4, 4)), found);
    EXPECT_EQ(log_->ReserveOrdinals(1, 0, 1).status(), found);
    log_.reset();
  }
  // What was saved before is whole.
  std::filesystem::remove(path_);
  std::filesystem::rename(backup, path_);
  Open();
  LogInspection again(log_.get(), path_, absl::ZeroDuration());
  EXPECT_OK(again.Inspect());
  EXPECT_EQ(Sealed(), "");
  EXPECT_EQ(*log_->CountRecords(), 201);
}

TEST_F(LogInspectionTest, ItComesByItselfAgainAndAgain) {
  LogInspection inspection(log_.get(), path_, absl::Milliseconds(50));
  const auto value = [&](const std::string& name) {
    MetricsPage page;
    inspection.Collect(page);
    for (const MetricFamily& family : page.families()) {
      if (family.name == name) return family.samples.at(0).value;
    }
    return -1.0;
  };
  ASSERT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return value("regatta_server_log_checks_total") >= 3;
  }));
  EXPECT_EQ(value("regatta_server_log_damaged"), 0);
  EXPECT_EQ(Sealed(), "");
  Flip(2 * kPageBytes + 3);
  EXPECT_TRUE(WaitFor(absl::Seconds(20), [&] {
    return value("regatta_server_log_damaged") == 1;
  }));
  EXPECT_THAT(Sealed(), HasSubstr("the tuning log is damaged"));
  // What can be read is.
  EXPECT_EQ(log_->LogId().size() > 8, true);
}

TEST_F(LogInspectionTest, StoppingOneIsNoVerdict) {
  std::optional<LogInspection> inspection(std::in_place, log_.get(), path_,
                                          absl::Milliseconds(1));
  inspection.reset();
  EXPECT_EQ(Sealed(), "");
}

}  // namespace
}  // namespace regatta::testing
