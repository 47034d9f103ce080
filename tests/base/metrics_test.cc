// Pages of metrics, histograms, and what a scraper gets over HTTP.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/host_port.h"
#include "base/listening_socket.h"
#include "base/metrics/histogram.h"
#include "base/metrics/metrics_endpoint.h"
#include "base/metrics/metrics_page.h"
#include "base/metrics/process_metrics.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "tests/support/scrape.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Head;
using testing::Scrape;
using testing::Value;

TEST(DurationHistogram, CountsUpToEachBoundAndSumsUp) {
  DurationHistogram histogram({0.1, 1, 10});
  for (const double seconds : {0.05, 0.1, 0.100001, 1.0, 9.0, 10.5, 99.0}) {
    histogram.Observe(absl::Seconds(seconds));
  }
  histogram.Observe(absl::Seconds(-3));
  const HistogramSnapshot snapshot = histogram.Snapshot();
  // At a bound counts below it, as Prometheus's "le" has it.
  EXPECT_THAT(snapshot.counts, ElementsAre(3, 2, 1, 2));
  EXPECT_EQ(snapshot.Count(), 8u);
  EXPECT_NEAR(snapshot.sum, 0.05 + 0.1 + 0.100001 + 1 + 9 + 10.5 + 99, 1e-9);
}

TEST(DurationHistogram, ManyThreadsLoseNothing) {
  DurationHistogram histogram(LatencyBounds());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) histogram.Observe(absl::Milliseconds(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Snapshot().Count(), 4000u);
  EXPECT_NEAR(histogram.Snapshot().sum, 4 * 999 * 1000 / 2 / 1e3, 1e-6);
}

TEST(MetricsPage, SamplesOfANameStandTogether) {
  MetricsPage page;
  page.Counter("a_total", "first", 1, {{"x", "1"}});
  page.Gauge("b", "other", 7);
  page.Counter("a_total", "second", 2, {{"x", "2"}});
  ASSERT_EQ(page.families().size(), 2u);
  EXPECT_EQ(page.families()[0].samples.size(), 2u);
  EXPECT_EQ(page.families()[0].help, "first");
  EXPECT_DEATH(page.Gauge("a_total", "", 1), "two kinds");
  EXPECT_DEATH(page.Gauge("a-b", "", 1), "no name");
}

class Endpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", [](MetricsPage&) {});
    if (absl::IsUnimplemented(endpoint.status())) {
      GTEST_SKIP() << endpoint.status().message();
    }
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  }
};

TEST_F(Endpoint, AScraperGetsThePageInPrometheussFormat) {
  int scrapes = 0;
  DurationHistogram histogram({0.5, 2});
  histogram.Observe(absl::Seconds(1));
  histogram.Observe(absl::Seconds(3));
  const auto endpoint =
      MetricsEndpoint::Start("localhost:0", [&](MetricsPage& page) {
        page.Counter("regatta_test_total", "What it is", ++scrapes,
                     {{"name", "a \"b\"\n\\c"}});
        page.Histogram("regatta_test_seconds", "Times", histogram.Snapshot());
        CollectProcess("regatta-test", "1.2.3", {{"extra", "x"}}, page);
      });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const std::string address = (*endpoint)->address();
  EXPECT_THAT(address, ::testing::StartsWith("localhost:"));
  const std::string body = Scrape(address);
  EXPECT_THAT(body, HasSubstr("# HELP regatta_test_total What it is\n"
                              "# TYPE regatta_test_total counter\n"));
  EXPECT_EQ(Value(body, "regatta_test_total{name=\"a \\\"b\\\"\\n\\\\c\"}"), 1);
  EXPECT_EQ(Value(body, "regatta_test_seconds_bucket{le=\"0.5\"}"), 0);
  EXPECT_EQ(Value(body, "regatta_test_seconds_bucket{le=\"2\"}"), 1);
  EXPECT_EQ(Value(body, "regatta_test_seconds_bucket{le=\"+Inf\"}"), 2);
  EXPECT_EQ(Value(body, "regatta_test_seconds_sum"), 4);
  EXPECT_EQ(Value(body, "regatta_test_seconds_count"), 2);
  EXPECT_EQ(Value(body,
                  "regatta_build_info{daemon=\"regatta-test\","
                  "version=\"1.2.3\",extra=\"x\"}"),
            1);
  EXPECT_GT(*Value(body, "process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(*Value(body, "process_open_fds"), 3);
  EXPECT_NEAR(*Value(body, "process_start_time_seconds"),
              static_cast<double>(time(nullptr)), 120);
  EXPECT_EQ(Value(Scrape(address),
                  "regatta_test_total{name=\"a \\\"b\\\"\\n\\\\c\"}"),
            2);
}

TEST_F(Endpoint, AHeadIsAnsweredAsAGetWithoutABody) {
  int collected = 0;
  const auto endpoint = MetricsEndpoint::Start(
      "127.0.0.1:0",
      [&](MetricsPage& page) { page.Gauge("regatta_test", "", ++collected); });
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const std::string& address = (*endpoint)->address();
  for (const char* path : {"/metrics", "/metrics?name=x"}) {
    const std::string head = Head(address, path);
    EXPECT_THAT(head, ::testing::StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(head, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
    EXPECT_THAT(head, ::testing::EndsWith("\r\n\r\n"));
  }
  for (const char* path : {"/", "/metric", "/metricsx"}) {
    EXPECT_THAT(Head(address, path),
                ::testing::MatchesRegex("HTTP/1\\.[01] 404 Not Found\r\n.*"))
        << path;
  }
  EXPECT_EQ(collected, 0);
  EXPECT_EQ(Value(Scrape(address), "regatta_test"), 1);
}

// Whether the library has IPv6 and the machine too; else it says so.
bool ServesIpv6() {
  if (!ListenOn("[::1]:0").ok()) return false;
  const auto endpoint = MetricsEndpoint::Start(
      "[::1]:0", [](MetricsPage& page) { page.Gauge("regatta_test", "", 5); });
  if (!endpoint.ok()) {
    EXPECT_THAT(std::string(endpoint.status().message()),
                HasSubstr("built without IPv6; name an address of IPv4"));
    return false;
  }
  EXPECT_THAT((*endpoint)->address(), ::testing::StartsWith("[::1]:"));
  EXPECT_EQ(Value(Scrape((*endpoint)->address()), "regatta_test"), 5);
  return true;
}

TEST_F(Endpoint, ANameIsServedOnAllItsAddressesOrItIsSaidOnWhich) {
  const bool six = ServesIpv6();
  ::testing::internal::CaptureStderr();
  const auto endpoint = MetricsEndpoint::Start(
      "localhost:0",
      [](MetricsPage& page) { page.Gauge("regatta_test", "", 5); });
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const std::string port =
      ":" + std::to_string(SplitHostPort((*endpoint)->address())->second);
  // Its addresses here, of which a machine may have one only.
  const auto same = ListenOn("localhost:0");
  ASSERT_TRUE(same.ok()) << same.status();
  for (const std::string& other : AddressesOf(*same)) {
    const std::string address = SplitHostPort(other)->first + port;
    if (!six && address.starts_with('[')) {
      EXPECT_THAT(log, HasSubstr("127.0.0.1" + port + " alone, of "));
      continue;
    }
    EXPECT_EQ(Value(Scrape(address), "regatta_test"), 5) << address;
  }
  const auto taken =
      MetricsEndpoint::Start("localhost" + port, [](MetricsPage&) {});
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.status().message()),
              HasSubstr("Address already in use"));
}

TEST_F(Endpoint, ATakenPortSaysWhyAndABadAddressTakesNone) {
  const auto first = MetricsEndpoint::Start("127.0.0.1:0", [](MetricsPage&) {});
  ASSERT_TRUE(first.ok());
  const auto second =
      MetricsEndpoint::Start((*first)->address(), [](MetricsPage&) {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("Address already in use"));
  EXPECT_EQ(
      MetricsEndpoint::Start("nowhere", [](MetricsPage&) {}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(Endpoint, ThoseWhoSayNothingKeepNobodyWaiting) {
  const auto endpoint = MetricsEndpoint::Start(
      "127.0.0.1:0",
      [](MetricsPage& page) { page.Counter("a_total", "first", 1); });
  ASSERT_TRUE(endpoint.ok());
  const auto host_port = *SplitHostPort((*endpoint)->address());
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 40; ++i) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(host_port.second));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)),
              0);
    if (i % 2 == 1) {
      ASSERT_EQ(WriteAll(fd.get(), "GET /metrics HT"), 0);
    }
    silent.push_back(std::move(fd));
  }
  // Within its 10 s, as Prometheus has them.
  EXPECT_EQ(Value(Scrape((*endpoint)->address()), "a_total"), 1);
}

TEST_F(Endpoint, WhatIsNoRequestHarmsNothing) {
  const auto endpoint = MetricsEndpoint::Start(
      "127.0.0.1:0",
      [](MetricsPage& page) { page.Gauge("regatta_test", "", 5); });
  ASSERT_TRUE(endpoint.ok());
  const int port = SplitHostPort((*endpoint)->address())->second;
  for (const std::string& bytes :
       {std::string("\0\xff\n\n", 4), std::string(100'000, 'A'),
        std::string(
            "POST /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"),
        std::string("GET /../../etc/passwd HTTP/1.1\r\n\r\n")}) {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to),
              0);
    send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(Value(Scrape((*endpoint)->address()), "regatta_test"), 5);
}

}  // namespace
}  // namespace regatta
