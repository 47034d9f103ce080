#include "tracker/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace regatta {
namespace {

// A stream of 0, 1, 2 ... and its consumer, in one thread, with what may
// happen between two steps of the reader done at that very place.
class Stream {
 public:
  explicit Stream(int most) : most_(most), ahead_(most, [this] { ++reads_; }) {}

  // A read that was started ends. `meanwhile` happens before the message is
  // where the consumer finds it, `then` before it is counted.
  void EndRead(
      const std::function<void()>& meanwhile = [] {},
      const std::function<void()>& then = [] {}) {
    ASSERT_EQ(reads_, 1) << "one read at a time";
    --reads_;
    ahead_.Give([&, number = next_++] {
      meanwhile();
      queue_.push_back(number);
      then();
    });
  }
  void Consume() {
    if (queue_.empty()) return;
    consumed_.push_back(queue_.front());
    queue_.pop_front();
    ahead_.Took();
  }
  bool reading() const { return reads_ == 1; }
  bool Full() const { return static_cast<int>(queue_.size()) >= most_; }
  int read() const { return next_; }
  const std::vector<int>& consumed() const { return consumed_; }

 private:
  const int most_;
  int reads_ = 1;  // under way
  int next_ = 0;
  std::deque<int> queue_;
  std::vector<int> consumed_;
  ReadAhead ahead_;
};

std::vector<int> UpTo(int end) {
  std::vector<int> numbers(static_cast<size_t>(end));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(ReadAheadTest, AMessageThatIsOnItsWayIsNotOvertaken) {
  Stream stream(2);
  stream.EndRead();
  // The reader of 1 is held up; the consumer takes 0 and, were a read begun by
  // that, 2 would be there first.
  stream.EndRead([&] {
    stream.Consume();
    if (stream.reading()) stream.EndRead();
  });
  EXPECT_TRUE(stream.reading());
  stream.Consume();
  stream.Consume();
  EXPECT_EQ(stream.consumed(), UpTo(stream.read()));
}

TEST(ReadAheadTest, ReadsOnceAConsumerThatWasBehindTookOne) {
  Stream stream(2);
  stream.EndRead();
  stream.EndRead();
  EXPECT_FALSE(stream.reading());
  stream.Consume();
  EXPECT_TRUE(stream.reading());
  stream.Consume();
  EXPECT_TRUE(stream.reading());
}

TEST(ReadAheadTest, GoesOnInOrderWhereverTheConsumerCutsIn) {
  Random random(6);
  for (int most = 1; most <= 4; ++most) {
    Stream stream(most);
    const auto consume = [&] {
      for (uint64_t left = random.Below(4); left > 0; --left) stream.Consume();
    };
    while (stream.read() < 1000) {
      if (stream.reading()) {
        stream.EndRead(consume, consume);
      } else {
        ASSERT_TRUE(stream.Full()) << "nobody reads, and there is room";
        stream.Consume();
      }
    }
    while (static_cast<int>(stream.consumed().size()) < stream.read()) {
      stream.Consume();
    }
    EXPECT_EQ(stream.consumed(), UpTo(stream.read()));
    EXPECT_TRUE(stream.reading());
  }
}

}  // namespace
}  // namespace regatta
