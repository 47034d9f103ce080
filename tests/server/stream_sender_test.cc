#include "server/stream_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace regatta {
namespace {

using ::testing::ElementsAre;

// A stream whose client takes a message when it is told to.
class Client {
 public:
  explicit Client(bool reads) : reads_(reads) {}

  bool Write(int message) {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return reads_ || cancelled_; });
    if (cancelled_) return false;
    taken_.push_back(message);
    return true;
  }
  void Cancel() {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  void Read() {
    std::lock_guard lock(mutex_);
    reads_ = true;
    changed_.notify_all();
  }
  void WaitForWrite(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= n; });
  }
  std::vector<int> taken() {
    std::lock_guard lock(mutex_);
    return taken_;
  }
  bool cancelled() {
    std::lock_guard lock(mutex_);
    return cancelled_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reads_;
  bool cancelled_ = false;
  int begun_ = 0;
  std::vector<int> taken_;
};

class StreamSenderTest : public ::testing::Test {
 protected:
  std::unique_ptr<StreamSender<int>> Start(Client& client,
                                           absl::Duration patience) {
    return std::make_unique<StreamSender<int>>(
        [&client](int message) { return client.Write(message); },
        [&client] { client.Cancel(); }, patience);
  }
};

TEST_F(StreamSenderTest, SendsInOrderAndToTheEnd) {
  Client client(/*reads=*/true);
  auto sender = Start(client, absl::Minutes(10));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(i % 2 == 0 ? sender->Send(i) : sender->Post(i));
  }
  EXPECT_TRUE(sender->Finish());
  std::vector<int> all(50);
  for (int i = 0; i < 50; ++i) all[i] = i;
  EXPECT_EQ(client.taken(), all);
  EXPECT_FALSE(client.cancelled());
}

TEST_F(StreamSenderTest, ReportsNeverWaitAndOnlyTheLastIsSent) {
  Client client(/*reads=*/false);
  auto sender = Start(client, absl::Minutes(10));
  EXPECT_TRUE(sender->Report(0));
  client.WaitForWrite(1);
  for (int i = 1; i <= 1000; ++i) EXPECT_TRUE(sender->Report(i));
  client.Read();
  client.WaitForWrite(2);
  EXPECT_TRUE(sender->Finish());
  EXPECT_THAT(client.taken(), ElementsAre(0, 1000));
}

TEST_F(StreamSenderTest, NothingOldComesAfterTheEnd) {
  Client client(/*reads=*/false);
  auto sender = Start(client, absl::Minutes(10));
  EXPECT_TRUE(sender->Report(0));
  client.WaitForWrite(1);
  EXPECT_TRUE(sender->Report(1));
  EXPECT_TRUE(sender->Post(2));
  client.Read();
  EXPECT_TRUE(sender->Finish());
  EXPECT_THAT(client.taken(), ElementsAre(0, 2));
}

TEST_F(StreamSenderTest, AClientThatTakesNothingIsGivenUp) {
  for (const bool send : {true, false}) {
    Client client(/*reads=*/false);
    auto sender = Start(client, absl::Milliseconds(20));
    bool open = true;
    for (int i = 0; open && i < 10; ++i) {
      open = send ? sender->Send(i) : sender->Post(i) && i < 3;
    }
    EXPECT_FALSE(send && open);
    EXPECT_FALSE(sender->Finish());
    EXPECT_TRUE(client.cancelled());
    EXPECT_FALSE(sender->Open());
    EXPECT_FALSE(sender->Report(9));
    sender.reset();  // ends
    EXPECT_THAT(client.taken(), ElementsAre());
  }
}

TEST_F(StreamSenderTest, AWatcherThatStallsIsNoticedWithoutSending) {
  Client client(/*reads=*/false);
  auto sender = Start(client, absl::Milliseconds(20));
  EXPECT_TRUE(sender->Report(1));
  client.WaitForWrite(1);
  while (sender->Open()) std::this_thread::yield();
  EXPECT_TRUE(client.cancelled());
}

}  // namespace
}  // namespace regatta
