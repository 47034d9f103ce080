#include "base/serial_queue.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace regatta {
namespace {

TEST(SerialQueueTest, DoesAllInOrderAndRefusesWhatIsTooMuch) {
  std::vector<int> done;
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false, go = false;
  {
    SerialQueue queue(3);
    ASSERT_TRUE(queue.Post([&] {
      std::unique_lock lock(mutex);
      begun = true;
      changed.notify_all();
      changed.wait(lock, [&] { return go; });
    }));
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return begun; });
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(queue.Post([&done, i] { done.push_back(i); }));
    }
    EXPECT_FALSE(queue.Post([&done] { done.push_back(99); }));
    {
      std::lock_guard lock(mutex);
      go = true;
    }
    changed.notify_all();
  }
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace regatta
