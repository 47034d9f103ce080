#include "tests/support/grpc_messages.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace regatta::testing {
namespace {

using std::string_literals::operator""s;

// RFC 9113, 4.1: length, type, flags, stream.
std::string Frame(char type, char flags, char call, const std::string& bytes) {
  return std::string{'\0',
                     static_cast<char>(bytes.size() >> 8),
                     static_cast<char>(bytes.size()),
                     type,
                     flags,
                     '\0',
                     '\0',
                     '\0',
                     call} +
         bytes;
}
std::string Message(const std::string& bytes) {
  return std::string{'\0', '\0', '\0', '\0', static_cast<char>(bytes.size())} +
         bytes;
}

std::vector<std::string> Read(const std::string& bytes, size_t at_once) {
  GrpcMessages messages;
  std::vector<std::string> found;
  for (size_t at = 0; at < bytes.size(); at += at_once) {
    messages.Feed(std::string_view(bytes).substr(at, at_once),
                  [&](std::string_view m) { found.emplace_back(m); });
  }
  return found;
}

constexpr char kSettings = 4, kHeaders = 1;

TEST(GrpcMessagesTest, AreTheSameInWhateverPiecesTheyCome) {
  const std::string first = Message("one");
  const std::string bytes =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"s + Frame(kSettings, 0, 0, "123456") +
      Frame(kHeaders, 4, 1, "\x82\x86") +
      // One message in two frames, another call's between them.
      Frame(0, 0, 1, first.substr(0, 6)) + Frame(0, 0, 3, Message("other")) +
      // Its rest with padding, then two messages in one frame.
      Frame(0, 8, 1, "\x02"s + first.substr(6) + "\0\0"s) +
      Frame(0, 1, 1, Message("two") + Message(""));
  const std::vector<std::string> expected = {"other", "one", "two", ""};
  for (size_t at_once : {size_t{1}, size_t{7}, bytes.size()}) {
    EXPECT_EQ(Read(bytes, at_once), expected) << at_once << " bytes at once";
  }
}

TEST(GrpcMessagesTest, AServersBytesBeginWithoutAPreface) {
  EXPECT_EQ(Read(Frame(kSettings, 0, 0, "") + Frame(0, 0, 1, Message("x")), 1),
            std::vector<std::string>{"x"});
}

TEST(GrpcMessagesTest, AnUnfinishedMessageIsNone) {
  EXPECT_TRUE(Read(Frame(0, 0, 1, Message("half").substr(0, 7)), 3).empty());
}

}  // namespace
}  // namespace regatta::testing
