#include "device_agent/remote/description_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"

namespace regatta {
namespace {

// Builders that describe the board as they are told.
class FakeBuilders : public BuildWorkerInfo {
 public:
  absl::StatusOr<v1::Description> Describe(
      const v1::DescribeRequest& request) override {
    std::lock_guard lock(mutex_);
    EXPECT_EQ(request.cores(), 4);
    ++asked_;
    changed_.notify_all();
    if (!error_.ok()) return error_;
    return description_;
  }
  void Set(const std::string& target, const std::string& compiler) {
    std::lock_guard lock(mutex_);
    error_ = absl::OkStatus();
    description_.set_target(target);
    description_.set_compiler_version(compiler);
    description_.set_space("cpu");
    description_.set_space_version(3);
  }
  void Fail() {
    std::lock_guard lock(mutex_);
    error_ = absl::DeadlineExceededError("nobody is there");
  }
  // Waits until it was asked so often.
  bool AwaitAsked(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return asked_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0;
  absl::Status error_;
  v1::Description description_;
};

class DescriptionWatchTest : public ::testing::Test {
 protected:
  DescriptionWatchTest() : desk_({}, &RealClock(), [](v1::AgentMessage) {}) {
    DescriptionWatch::Options options;
    options.desk = &desk_;
    options.builders = &builders_;
    options.host.set_cores(4);
    ServedDevice& device = options.devices.emplace_back();
    device.info.set_device_id("d");
    device.info.set_target("cpu,t");
    device.info.set_compiler_version("c1");
    device.info.set_space("cpu");
    device.info.set_space_version(3);
    options.on_build = [this](const std::string& id, const DeviceBuild& build) {
      std::lock_guard lock(mutex_);
      EXPECT_EQ(id, "d");
      builds_.push_back(build.compiler_version);
      changed_.notify_all();
    };
    builders_.Set("cpu,t", "c1");
    watch_ = std::make_unique<DescriptionWatch>(options);
  }
  bool AwaitBuilds(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20),
                             [&] { return builds_.size() >= count; });
  }

  OrderDesk desk_;
  FakeBuilders builders_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> builds_;
  std::unique_ptr<DescriptionWatch> watch_;
};

TEST_F(DescriptionWatchTest, TellsOfAnotherCompilerWhenBuildersChange) {
  desk_.OnSession({true, true, 1});
  ASSERT_TRUE(builders_.AwaitAsked(1));  // the same: nothing to tell
  builders_.Set("cpu,t", "c2");
  desk_.OnSession({true, true, 2});
  ASSERT_TRUE(AwaitBuilds(1));
  EXPECT_EQ(builds_[0], "c2");
  builders_.Set("cpu,t", "c3");
  desk_.OnSession({true, true, 3});
  ASSERT_TRUE(AwaitBuilds(2));
  EXPECT_EQ(builds_[1], "c3");
  EXPECT_EQ(builds_.size(), 2u);
  EXPECT_EQ(watch_->WhyRestart(), "");
}

TEST_F(DescriptionWatchTest, AsksAgainAfterAFailure) {
  builders_.Fail();
  desk_.OnSession({true, true, 1});
  ASSERT_TRUE(builders_.AwaitAsked(1));
  builders_.Set("cpu,t", "c2");
  desk_.OnSession({true, true, 2});
  ASSERT_TRUE(AwaitBuilds(1));
  EXPECT_EQ(builds_[0], "c2");
}

TEST_F(DescriptionWatchTest, AnotherTargetNeedsARestart) {
  builders_.Set("cpu,other", "c2");
  desk_.OnSession({true, true, 1});
  ASSERT_TRUE(builders_.AwaitAsked(1));
  builders_.Set("cpu,t", "c2");  // whoever comes later has been told
  desk_.OnSession({true, true, 2});
  ASSERT_TRUE(AwaitBuilds(1));  // so the first answer was dealt with
  EXPECT_EQ(watch_->WhyRestart(),
            "builders now call device d cpu,other, before cpu,t");
}

}  // namespace
}  // namespace regatta
