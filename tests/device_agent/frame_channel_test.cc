#include "device_agent/spawner/frame_channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/memory_file.h"
#include "gtest/gtest.h"
#include "regatta/v1/worker.pb.h"
#include "tests/device_agent/few_files.h"

namespace regatta {
namespace {

class FrameChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ends = FrameChannel::SocketPair();
    ASSERT_TRUE(ends.ok());
    raw_ = std::move(ends->first);
    channel_ = std::make_unique<FrameChannel>(std::move(ends->second));
  }
  void WriteRaw(const std::string& bytes) {
    ASSERT_EQ(write(raw_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  UniqueFd raw_;
  std::unique_ptr<FrameChannel> channel_;
};

TEST_F(FrameChannelTest, CarriesAMessageAndItsDescriptors) {
  FrameChannel sender(std::move(raw_));
  auto file = SealedMemoryFile("test", "content");
  ASSERT_TRUE(file.ok());
  v1::Kill kill;
  kill.set_worker(42);
  const int fds[] = {file->get(), file->get()};
  ASSERT_TRUE(sender.Send(kill, fds).ok());
  kill.set_worker(43);
  ASSERT_TRUE(sender.Send(kill).ok());

  std::vector<UniqueFd> got;
  auto first = channel_->ReceiveMessage<v1::Kill>(&got);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->worker(), 42);
  ASSERT_EQ(got.size(), 2u);
  auto mapped = MappedFile::Map(got[1].get());
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->bytes(), "content");
  auto second = channel_->ReceiveMessage<v1::Kill>(&got);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->worker(), 43);
  EXPECT_TRUE(got.empty());
}

TEST_F(FrameChannelTest, CarriesAFrameLargerThanTheSocketsBuffer) {
  FrameChannel sender(std::move(raw_));
  v1::BuildFailure large;
  large.set_detail(std::string(3 << 20, 'x'));
  std::thread thread([&] { EXPECT_TRUE(sender.Send(large).ok()); });
  auto got = channel_->ReceiveMessage<v1::BuildFailure>();
  thread.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->detail(), large.detail());
}

TEST_F(FrameChannelTest, AnEndBetweenFramesIsOutOfRange) {
  raw_.Reset();
  EXPECT_EQ(channel_->Receive().status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(FrameChannelTest, AnEndInsideTheLengthIsDataLoss) {
  WriteRaw(std::string("\x05\x00", 2));
  raw_.Reset();
  EXPECT_EQ(channel_->Receive().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(FrameChannelTest, AnEndInsideTheBytesIsDataLoss) {
  WriteRaw(
      std::string("\x05\x00\x00\x00"
                  "abc",
                  7));
  raw_.Reset();
  EXPECT_EQ(channel_->Receive().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(FrameChannelTest, AnOversizedLengthIsRefusedBeforeItIsAllocated) {
  WriteRaw(std::string("\xff\xff\xff\xff", 4));
  const absl::Status status = channel_->Receive().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("4294967295"), absl::string_view::npos);
}

TEST_F(FrameChannelTest, SilenceEndsWithTheDeadline) {
  EXPECT_EQ(channel_->Receive(1).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  WriteRaw(
      std::string("\x05\x00\x00\x00"
                  "abc",
                  7));
  EXPECT_EQ(channel_->Receive(1).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(FrameChannelTest, BytesThatAreNoMessageAreDataLoss) {
  WriteRaw(
      std::string("\x03\x00\x00\x00"
                  "\xff\xff\xff",
                  7));
  EXPECT_EQ(channel_->ReceiveMessage<v1::Kill>().status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(FrameChannelTest, DescriptorsThatMayNotBeOpenedAreDataLoss) {
  FrameChannel sender(std::move(raw_));
  const int fds[] = {0, 0};
  ASSERT_TRUE(sender.Send(v1::Kill(), fds).ok());
  absl::Status status;
  {
    const FewFiles few;
    status = channel_->Receive().status();
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("ulimit -n"), absl::string_view::npos)
      << status;
}

TEST_F(FrameChannelTest, SendingToAGonePeerFailsWithoutASignal) {
  raw_.Reset();
  EXPECT_EQ(channel_->Send(v1::Kill()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(FrameChannelTest, TooManyDescriptorsAreRefused) {
  const std::vector<int> fds(FrameChannel::kMaxDescriptors + 1, 0);
  EXPECT_EQ(channel_->Send(v1::Kill(), fds).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(MemoryFileTest, ASealedFileCannotBeChangedByAnybody) {
  auto file = SealedMemoryFile("test", "content");
  ASSERT_TRUE(file.ok());
  EXPECT_LT(pwrite(file->get(), "x", 1, 0), 0);
  EXPECT_NE(ftruncate(file->get(), 0), 0);
  EXPECT_EQ(*FileBytes(file->get()), 7);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(FileBytes(ends[0]).ok());
}

}  // namespace
}  // namespace regatta
