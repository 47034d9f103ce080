#include "server/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;

// The tracker's limit of a message.
constexpr size_t kTaken = size_t{8} << 20;

v1::Work MakeWork(int number, size_t workload_bytes) {
  v1::Work work;
  work.set_work_id(absl::StrCat("1/0/", number));
  work.add_trials()->set_workload(std::string(workload_bytes, 'x'));
  return work;
}

v1::DispatchRequest Submission(int first, int count, size_t workload_bytes) {
  v1::DispatchRequest request;
  for (int i = 0; i < count; ++i) {
    *request.mutable_submit()->add_work() = MakeWork(first + i, workload_bytes);
  }
  return request;
}

v1::DispatchRequest Acks(int count) {
  v1::DispatchRequest request;
  for (int i = 0; i < count; ++i) {
    request.mutable_commit_ack()->add_acks()->set_trial_id("1/0/0");
  }
  return request;
}

// How many units of work each message has. Checks their order, and that the
// tracker takes them.
std::vector<int> WorksOf(RequestQueue& queue) {
  std::vector<int> works;
  int next = 0;
  while (!queue.empty()) {
    const v1::DispatchRequest request = queue.Pop();
    EXPECT_LT(request.ByteSizeLong(), kTaken);
    works.push_back(request.submit().work_size());
    for (const v1::Work& work : request.submit().work()) {
      EXPECT_EQ(work.work_id(), absl::StrCat("1/0/", next++));
    }
  }
  return works;
}

TEST(RequestQueueTest, ManyWorksAreCutByTheirNumber) {
  RequestQueue queue;
  queue.Push(Submission(0, 1200, 100));
  EXPECT_THAT(WorksOf(queue), ElementsAre(500, 500, 200));
}

// 65,536 bytes each, and some 20 around them: 31 of them have less than 2 MiB.
TEST(RequestQueueTest, LargeWorksAreCutByTheirBytes) {
  RequestQueue queue;
  queue.Push(Submission(0, 100, 64 << 10));
  EXPECT_THAT(WorksOf(queue), ElementsAre(31, 31, 31, 7));
}

TEST(RequestQueueTest, SubmissionsThatWaitAreJoinedAsFarAsTheyAreTaken) {
  RequestQueue queue;
  for (int i = 0; i < 130; ++i) queue.Push(Submission(i, 1, 64 << 10));
  EXPECT_THAT(WorksOf(queue), ElementsAre(31, 31, 31, 31, 6));
  for (int i = 0; i < 130; ++i) queue.Push(Submission(5 * i, 5, 100));
  EXPECT_THAT(WorksOf(queue), ElementsAre(500, 150));
}

TEST(RequestQueueTest, AWorkThatIsTooLargeBesideOthersGoesAlone) {
  RequestQueue queue;
  queue.Push(Submission(0, 2, 100));
  queue.Push(Submission(2, 2, 3 << 20));
  queue.Push(Submission(4, 2, 100));
  EXPECT_THAT(WorksOf(queue), ElementsAre(2, 1, 1, 2));
}

TEST(RequestQueueTest, AcknowledgementsAreJoinedAndNothingOvertakes) {
  RequestQueue queue;
  v1::DispatchRequest cancel;
  cancel.mutable_cancel()->set_job_id(7);
  queue.Push(Acks(9'999));
  queue.Push(Acks(2));
  queue.Push(Submission(0, 1, 100));
  queue.Push(cancel);
  queue.Push(cancel);
  queue.Push(Submission(1, 1, 100));
  EXPECT_EQ(queue.Pop().commit_ack().acks_size(), 10'000);
  EXPECT_EQ(queue.Pop().commit_ack().acks_size(), 1);
  EXPECT_EQ(queue.Pop().submit().work_size(), 1);
  EXPECT_EQ(queue.Pop().cancel().job_id(), 7);
  EXPECT_EQ(queue.Pop().cancel().job_id(), 7);
  EXPECT_EQ(queue.Pop().submit().work(0).work_id(), "1/0/1");
  EXPECT_TRUE(queue.empty());
}

TEST(RequestQueueTest, NothingIsNoMessage) {
  RequestQueue queue;
  v1::DispatchRequest empty;
  empty.mutable_submit();
  queue.Push(empty);
  EXPECT_TRUE(queue.empty());
  queue.Push(Submission(0, 3, 100));
  queue.Clear();
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace regatta
