// URLs of the fleet's file, and posting to receivers that take their time.
#include "tracker/config/http_post.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "tracker/config/http_url.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(HttpUrl, TakesUrlsApart) {
  const auto url = ParseHttpUrl("http://ann%40x:se%3Acret@pdu:8080/a/b?k=v#f");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->user, "ann@x");
  EXPECT_EQ(url->password, "se:cret");
  EXPECT_EQ(url->host, "pdu");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->target, "/a/b?k=v");
  EXPECT_EQ(url->shown, "http://pdu:8080/a/b");
  const auto bare = ParseHttpUrl("http://[::1]?x=1");
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->user, "");
  EXPECT_EQ(bare->host, "::1");
  EXPECT_EQ(bare->port, 80);
  EXPECT_EQ(bare->target, "/?x=1");
  // An at sign in the path is no user.
  EXPECT_EQ(ParseHttpUrl("http://h/u@x")->host, "h");
}

TEST(HttpUrl, ErrorsTellNoSecrets) {
  for (const char* text : {"http://ann:secret@/x", "http://ann:secret@h:0/",
                           "http://ann:secret@h:x/", "http://ann:secret@h/ x",
                           "https://ann:secret@h/", "http://ann:sec%ret@h/"}) {
    const auto url = ParseHttpUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(std::string(url.status().message()).find("sec"),
              std::string::npos)
        << url.status();
  }
}

// Takes one connection on loopback and lets `answer` have it.
class Receiver {
 public:
  explicit Receiver(std::function<void(int fd)> answer)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd_.get(), raw, size), 0);
    EXPECT_EQ(listen(fd_.get(), 1), 0);
    EXPECT_EQ(getsockname(fd_.get(), raw, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] {
      UniqueFd connection(accept(fd_.get(), nullptr, nullptr));
      if (connection.get() >= 0) answer(connection.get());
    });
  }
  ~Receiver() {
    shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string At(const std::string& user, const std::string& target) const {
    return absl::StrCat("http://", user, "127.0.0.1:", port_, target);
  }

 private:
  UniqueFd fd_;
  int port_ = 0;
  std::thread thread_;
};

// What came until the end of the body of a POST of so many bytes.
std::string Request(int fd, size_t body) {
  std::string text;
  char buffer[1024];
  while (true) {
    const size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos && text.size() >= end + 4 + body) return text;
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size <= 0) return text;
    text.append(buffer, static_cast<size_t>(size));
  }
}

void Say(int fd, const std::string& text) {
  EXPECT_EQ(send(fd, text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

TEST(HttpPost, SendsUserAndPasswordOfTheUrl) {
  if (!HttpAvailable()) GTEST_SKIP() << "built without cpp-httplib";
  std::string got;
  absl::Status status;
  {
    const Receiver receiver([&got](int fd) {
      got = Request(fd, 5);
      Say(fd, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n");
    });
    status = HttpPost(receiver.At("ann:secret@", "/on?outlet=3"), "hello",
                      "text/plain", absl::Seconds(30));
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(got.starts_with("POST /on?outlet=3 HTTP/1.1\r\n")) << got;
  // base64 of "ann:secret"
  EXPECT_THAT(got, HasSubstr("Authorization: Basic YW5uOnNlY3JldA==\r\n"));
  EXPECT_THAT(got, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_TRUE(got.ends_with("\r\n\r\nhello")) << got;
}

TEST(HttpPost, AnotherAnswerIsNamedWithoutTheSecret) {
  if (!HttpAvailable()) GTEST_SKIP() << "built without cpp-httplib";
  const Receiver receiver([](int fd) {
    Request(fd, 0);
    Say(fd, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
  });
  const absl::Status status =
      HttpPost(receiver.At("ann:secret@", "/x?key=secret"), "", "text/plain",
               absl::Seconds(30));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            absl::StrCat(receiver.At("", "/x"), " answered 503"));
}

// Each byte is in time, the whole never is: first in the headers, then in the
// body.
TEST(HttpPost, OneThatDripsIsEndedAtTheDeadline) {
  if (!HttpAvailable()) GTEST_SKIP() << "built without cpp-httplib";
  for (const std::string& begin :
       {std::string("HTTP/1.1 200 OK\r\nX-Slow: "),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")}) {
    const Receiver receiver([&begin](int fd) {
      Request(fd, 0);
      Say(fd, begin);
      // Until the other side closes.
      pollfd other{fd, POLLIN, 0};
      while (poll(&other, 1, /*ms=*/50) == 0 &&
             send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
      }
    });
    const SteadyTime began = RealClock().Steady();
    const absl::Status status = HttpPost(receiver.At("", "/x"), "",
                                         "text/plain", absl::Milliseconds(600));
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_LT(RealClock().Steady() - began, absl::Seconds(20));
  }
}

}  // namespace
}  // namespace regatta
