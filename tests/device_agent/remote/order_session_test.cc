// A builder under a tracker that begins anew, and with it to count its orders:
// what was ordered before is nobody's any more.
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/device_agent/remote/wire.h"

namespace regatta {
namespace {

class OrderSession : public ::testing::Test {
 protected:
  OrderSession() {
    folder_ = ::testing::TempDir() + "/order-session-XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    locks_ = std::make_unique<CoreLocks>(folder_);
    std::vector<OrderBuilder::Slot> slots;
    for (int cpu = 0; cpu < 2; ++cpu) {
      slots.push_back({cpu, std::make_unique<FakeBuildWorker>(
                                [this](const v1::BuildRequest& request) {
                                  return Build(request);
                                })});
    }
    builder_ = std::make_unique<OrderBuilder>(
        SigningKey::Generate(), "b", std::move(slots), locks_.get(),
        [this](v1::AgentMessage message) {
          std::lock_guard lock(mutex_);
          answers_.push_back(message.build_answer());
          changed_.notify_all();
        });
    builder_->OnSession({true, true, 1});
  }
  ~OrderSession() override {
    builder_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Order(const std::string& id, const std::string& schedule) {
    v1::BuildRequest request;
    request.mutable_module()->mutable_schedule()->set_text(schedule);
    v1::TrackerMessage message;
    message.mutable_build_order()->set_order_id(id);
    message.mutable_build_order()->set_request(request.SerializeAsString());
    builder_->OnBuildMessage(message);
  }
  // Waits until a slot builds it; `Release` lets it go on.
  void AwaitBuild(const std::string& schedule) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_.contains(schedule); });
  }
  void Release(const std::string& schedule) {
    std::lock_guard lock(mutex_);
    released_.insert(schedule);
    changed_.notify_all();
  }
  // Waits until the order is answered. What was answered so far, in order, each
  // "ID=BYTES OF THE MODULE".
  std::vector<std::string> AnswersUpTo(const std::string& id) {
    std::unique_lock lock(mutex_);
    std::vector<std::string> said;
    changed_.wait(lock, [&] {
      said.clear();
      bool found = false;
      for (const v1::BuildAnswer& answer : answers_) {
        said.push_back(answer.order_id() + "=" +
                       std::to_string(answer.file_bytes()));
        found = found || answer.order_id() == id;
      }
      return found;
    });
    return said;
  }

 private:
  // A module of as many bytes as the schedule's text.
  absl::StatusOr<BuildWorker::Reply> Build(const v1::BuildRequest& request) {
    const std::string schedule = request.module().schedule().text();
    std::unique_lock lock(mutex_);
    begun_.insert(schedule);
    changed_.notify_all();
    changed_.wait(lock, [&] { return released_.contains(schedule); });
    if (schedule == "lacking") return absl::UnavailableError("no compiler");
    return FakeBuildWorker::Module(schedule);
  }

  std::string folder_;
  std::unique_ptr<CoreLocks> locks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> begun_, released_;
  std::vector<v1::BuildAnswer> answers_;

 protected:
  std::unique_ptr<OrderBuilder> builder_;  // ends first
};

TEST_F(OrderSession, AnOrderOfAnEarlierOneIsNotAnsweredUnderTheSameId) {
  Order("7", "old");
  AwaitBuild("old");
  builder_->OnSession({});
  builder_->OnSession({true, true, 1});
  Order("7", "newer");
  AwaitBuild("newer");
  // The slot of the old one is free again once it has answered another.
  Release("old");
  Release("other");
  Order("8", "other");
  EXPECT_EQ(AnswersUpTo("8"), std::vector<std::string>{"8=5"});
  // And left the new one alone.
  Release("newer");
  EXPECT_EQ(AnswersUpTo("7"), (std::vector<std::string>{"8=5", "7=5"}));
}

TEST_F(OrderSession, AFailureOfAnEarlierOneIsNotDeclinedUnderTheSameId) {
  Order("7", "lacking");
  AwaitBuild("lacking");
  builder_->OnSession({});
  builder_->OnSession({true, true, 1});
  Order("7", "newer");
  AwaitBuild("newer");
  Release("lacking");
  Release("other");
  Order("8", "other");
  EXPECT_EQ(AnswersUpTo("8"), std::vector<std::string>{"8=5"});
  Release("newer");
  EXPECT_EQ(AnswersUpTo("7"), (std::vector<std::string>{"8=5", "7=5"}));
}

}  // namespace
}  // namespace regatta
