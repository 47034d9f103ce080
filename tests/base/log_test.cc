// Lines of the log, as text and as JSON, and what never stands in them.
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/redact.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr char kTime[] = "2026-01-02T03:04:05.678Z";

std::string Line(LogFormat format, std::string_view message,
                 const std::vector<LogField>& fields = {}) {
  return FormatLogLine(format, kTime, LogLevel::kWarning, "regatta-tracker",
                       "tracker/a.cc:7", message, fields);
}

TEST(Log, TextHasTheFieldsBehindTheMessage) {
  EXPECT_EQ(Line(LogFormat::kText, "board b1 is lost"),
            "2026-01-02T03:04:05.678Z warning regatta-tracker: board b1 is "
            "lost\n");
  EXPECT_EQ(
      Line(LogFormat::kText, "gone",
           {LogEvent("board_lost"), LogDevice("b1"),
            LogReason("pulled \"out\""), LogTrial("")}),
      "2026-01-02T03:04:05.678Z warning regatta-tracker: gone "
      "event=board_lost device=b1 reason=\"pulled \\\"out\\\"\" trial=\"\"\n");
}

TEST(Log, WhatOthersSayBeginsNoLineAndSpeaksToNoTerminal) {
  const std::string line =
      Line(LogFormat::kText,
           "agent a1 leaves: \n2026-01-02T03:04:05.678Z error x\r\t\x1b[2J\x7f "
           "\xc2\x9b"
           "1m \xe2\x82\xac \xc2\xb5s",
           {LogReason("\x1b[31m"), LogAgent("a\nb\xc2\x9b")});
  EXPECT_EQ(
      line,
      "2026-01-02T03:04:05.678Z warning regatta-tracker: agent a1 leaves: "
      "\\n2026-01-02T03:04:05.678Z error x\\r\\t\\x1b[2J\\x7f "
      "\\x9b"
      "1m \xe2\x82\xac \xc2\xb5s reason=\"\\u001b[31m\" "
      "agent=\"a\\nb\\x9b\"\n");
}

TEST(Log, JsonIsOneObjectALineWhateverTheTextIs) {
  const std::string message = "a \"b\"\n\tc \\ \x01 \xff\xfe \xe2\x82\xac";
  const std::string line =
      Line(LogFormat::kJson, message,
           {LogEvent("lease_lost"), LogDevice("b\n1"), LogSession("12")});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["ts"], kTime);
  EXPECT_EQ(json["severity"], "warning");
  EXPECT_EQ(json["daemon"], "regatta-tracker");
  EXPECT_EQ(json["source"], "tracker/a.cc:7");
  // Bytes that are no UTF-8 are replaced.
  EXPECT_EQ(json["message"],
            "a \"b\"\n\tc \\ \x01 \xef\xbf\xbd\xef\xbf\xbd \xe2\x82\xac");
  EXPECT_EQ(json["event"], "lease_lost");
  EXPECT_EQ(json["device"], "b\n1");
  EXPECT_EQ(json["session"], "12");
  EXPECT_EQ(json.size(), 8u);
}

TEST(Log, ALineKnowsItsPlaceAndItsFields) {
  SetLogProgram("log_test");
  SetLogFormat(LogFormat::kJson);
  ::testing::internal::CaptureStderr();
  const int at = __LINE__ + 1;
  LOG(kError) << LogTrial("1/0/7") << "n = " << 3 << LogReason("why") << "!";
  LOG(kInfo) << "second";
  const std::string both = ::testing::internal::GetCapturedStderr();
  SetLogFormat(LogFormat::kText);
  const auto first = nlohmann::json::parse(both.substr(0, both.find('\n')));
  EXPECT_EQ(first["source"], "tests/base/log_test.cc:" + std::to_string(at));
  EXPECT_EQ(first["message"], "n = 3!");
  EXPECT_EQ(first["trial"], "1/0/7");
  EXPECT_EQ(first["reason"], "why");
  EXPECT_EQ(first["severity"], "error");
  EXPECT_THAT(first["ts"].get<std::string>(),
              MatchesRegex("20[0-9-]+T[0-9:]+\\.[0-9][0-9][0-9]Z"));
  const auto second = nlohmann::json::parse(both.substr(both.find('\n') + 1));
  EXPECT_EQ(second["severity"], "info");
  EXPECT_FALSE(second.contains("trial"));
}

TEST(Log, TheFormatIsInheritedAndEndsWithAFailureInIt) {
  setenv(kLogFormatVariable, "json", 1);
  InheritLogFormat();
  SetLogProgram("p");
  ::testing::internal::CaptureStderr();
  ReportFailure("no");
  const auto json =
      nlohmann::json::parse(::testing::internal::GetCapturedStderr());
  EXPECT_EQ(json["severity"], "error");
  EXPECT_EQ(json["message"], "no");
  unsetenv(kLogFormatVariable);
  InheritLogFormat();
  ::testing::internal::CaptureStderr();
  ReportFailure("no");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "p: no\n");
}

TEST(Log, SecretsAreBlottedOutInMessagesAndFields) {
  const std::string secret = "0123456789abcdef0123456789abcdef";
  const std::string token = "rgt1-" + secret + "-" + std::string(64, 'f');
  const std::string body = "MHcCAQEEIKq\nsecretbytes\n";
  const std::string key = "-----BEGIN EC PRIVATE KEY-----\n" + body +
                          "-----END EC PRIVATE KEY-----\n";
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = Line(format, "refused " + token + " and " + key,
                                  {LogReason(token), LogPeer(key)});
    EXPECT_THAT(line, Not(HasSubstr(secret)));
    EXPECT_THAT(line, Not(HasSubstr("secretbytes")));
    EXPECT_THAT(line, HasSubstr("refused rgt1-...-ffff"));
  }
  EXPECT_EQ(Redact("a " + token + " b"),
            "a rgt1-...-" + std::string(64, 'f') + " b");
  EXPECT_EQ(Redact(key),
            "-----BEGIN EC PRIVATE KEY-----...-----END EC PRIVATE KEY-----\n");
  // Cut off, twice, and what only looks like it.
  EXPECT_EQ(Redact("rgt1-abc"), "rgt1-...");
  EXPECT_EQ(Redact("-----BEGIN PRIVATE KEY-----\nMHc"),
            "-----BEGIN PRIVATE KEY-----...");
  EXPECT_EQ(Redact(token + token), Redact(token) + Redact(token));
  for (const std::string text :
       {"", "rgt1-", "rgt1", "-----BEGIN CERTIFICATE-----\nMII\n",
        "-----BEGIN ", "plain"}) {
    EXPECT_EQ(Redact(text), text);
  }
}

}  // namespace
}  // namespace regatta
