// Workloads and results for tests of the tuning log.
#ifndef REGATTA_TESTS_STORAGE_RECORDS_H_
#define REGATTA_TESTS_STORAGE_RECORDS_H_

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/tuning_log.h"

namespace regatta::testing {

// matmul of one shape; its key is "matmul-M-N-K".
WorkloadInfo Matmul(int64_t m, int64_t n, int64_t k);

// A verified result of `schedule` on the class "zen4-2c" with warm caches and
// one thread: three kept blocks of ten calls around `time_ns` per call.
v1::TrialResult OkResult(const std::string& trial_id,
                         const WorkloadInfo& workload,
                         const std::string& schedule, int64_t time_ns);
// The same without time and blocks.
v1::TrialResult Failed(v1::TrialResult result, v1::Outcome outcome);
// `times` per call, one kept block of one call each.
void SetBlocks(v1::TrialResult& result, const std::vector<int64_t>& times);

BestKey KeyFor(const WorkloadInfo& workload,
               const std::string& device_class = "zen4-2c");

Publication Verdict(const v1::TrialResult& result, int64_t time_ns);

// All records of the workload, oldest first.
std::vector<StoredRecord> AllRecords(const TuningLog& log,
                                     const WorkloadInfo& workload);
std::vector<std::string> TrialIds(const std::vector<StoredRecord>& records);

// One text with every field of a best-known row.
std::string Describe(const BestKnown& best);

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

#define EXPECT_OK(expr)                                                  \
  do {                                                                   \
    const absl::Status expect_ok = ::regatta::testing::StatusOf((expr)); \
    EXPECT_TRUE(expect_ok.ok()) << expect_ok.ToString();                 \
  } while (false)
#define ASSERT_OK(expr)                                                  \
  do {                                                                   \
    const absl::Status expect_ok = ::regatta::testing::StatusOf((expr)); \
    ASSERT_TRUE(expect_ok.ok()) << expect_ok.ToString();                 \
  } while (false)
// The code, and a text that the message holds.
#define EXPECT_STATUS(expr, expected_code, text)                             \
  do {                                                                       \
    const absl::Status expect_status = ::regatta::testing::StatusOf((expr)); \
    EXPECT_EQ(expect_status.code(), absl::StatusCode::expected_code)         \
        << expect_status.ToString();                                         \
    EXPECT_THAT(std::string(expect_status.message()),                        \
                ::testing::HasSubstr(text));                                 \
  } while (false)

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_STORAGE_RECORDS_H_
