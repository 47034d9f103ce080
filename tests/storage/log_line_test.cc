#include "storage/log_line.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/json_message.h"
#include "tests/storage/random_message.h"
#include "tests/storage/records.h"
#include "tests/support/process.h"

namespace regatta::testing {
namespace {

v1::LogEntry RecordEntry() {
  v1::LogEntry entry;
  *entry.mutable_record()->mutable_result() =
      OkResult("abc:1/0/5", Matmul(4, 5, 6), "tile{mi=8}", 1000);
  entry.mutable_record()->set_recorded_unix_ms(12345);
  return entry;
}

TEST(LogLine, EveryFieldOfEveryEntryCanBeWritten) {
  EXPECT_TRUE(SupportsJson(*v1::LogEntry::descriptor()));
}

TEST(LogLine, RandomEntriesReadBackAsTheyWere) {
  const int cases = static_cast<int>(3000 * TestScale());
  Random random(7);
  for (int i = 0; i < cases; ++i) {
    v1::LogEntry entry;
    Randomise(entry, random);
    if (entry.entry_case() == v1::LogEntry::ENTRY_NOT_SET) continue;
    const std::string line = PrintLogLine(entry);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto read = ParseLogLine(line);
    ASSERT_OK(read);
    ASSERT_EQ(read->SerializeAsString(), entry.SerializeAsString()) << line;
    ASSERT_EQ(PrintLogLine(*read), line);
  }
}

TEST(LogLine, NamesAndSpellingsAreThoseOfTheManual) {
  v1::LogEntry entry;
  v1::LoggedPublication& verdict = *entry.mutable_publication();
  verdict.set_trial_id("abc:1/0/5");
  verdict.mutable_policy()->set_threads(2);
  verdict.mutable_policy()->set_cache(v1::CACHE_STATE_COLD);
  verdict.set_time_ns(9007199254740993);  // no double has it
  verdict.set_speedup(1.1);
  EXPECT_EQ(PrintLogLine(entry),
            R"({"v":1,"publication":{"trial_id":"abc:1/0/5",)"
            R"("policy":{"threads":2,"cache":"cold"},)"
            R"("time_ns":9007199254740993,"speedup":1.1}})");
  v1::LogEntry record;
  v1::TrialResult& result = *record.mutable_record()->mutable_result();
  result.set_outcome(v1::OUTCOME_OUT_OF_MEMORY);
  result.set_max_error(std::nan(""));
  result.mutable_spec()->set_kind(v1::TRIAL_KIND_RACE);
  EXPECT_EQ(PrintLogLine(record),
            R"({"v":1,"record":{"result":{"spec":{"kind":"race"},)"
            R"("outcome":"out_of_memory","max_error":"NaN"}}})");
  EXPECT_TRUE(std::isnan(
      ParseLogLine(PrintLogLine(record))->record().result().max_error()));
}

TEST(LogLine, HostileLinesAreRefusedWithAReason) {
  const std::string good = PrintLogLine(RecordEntry());
  ASSERT_OK(ParseLogLine(good));
  ASSERT_OK(ParseLogLine(good + " \r"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    const size_t at = line.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return line.replace(at, from.size(), to);
  };
  std::string deep = R"({"v":1,"record":)";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the line is empty"},
      {"   ", "the line is empty"},
      {"null", "does not begin with"},
      {"[1,2]", "does not begin with"},
      {"{}", "does not begin with"},
      {R"({"v":1})", "does not begin with"},
      {R"({"v":1,})", "the line holds nothing"},
      {R"({"v":2,"record":{}})", "has format 2, this program reads 1"},
      {R"({"v":"1","record":{}})", "does not begin with"},
      {R"({"v":1,"v":1,"record":{}})", "no field 'v'"},
      {R"({"v":1,"record":{},"end":{}})", "'end' excludes another"},
      {R"({"v":1,"recrod":{}})", "no field 'recrod' in LogEntry"},
      {R"({"v":1,"record":[]})", "record: expected an object, found a list"},
      {R"({"v":1,"record":7})", "record: expected an object, found a number"},
      {R"({"v":1,"record":null})", "record: expected an object, found null"},
      {deep, "record: expected an object, found a list"},
      {good.substr(0, good.size() / 2), "no JSON at column"},
      {good.substr(0, good.size() - 1), "no JSON at column"},
      {good + good, "no JSON at column"},
      {with("\"time_ns\":1000", "\"time_ns\":\"1000\""),
       "record.result.time_ns: expected a whole number, found a text"},
      {with("\"time_ns\":1000", "\"time_ns\":1.5"),
       "record.result.time_ns: expected a whole number, found the number 1.5"},
      {with("\"time_ns\":1000", "\"time_ns\":NaN"), "no JSON at column"},
      {with("\"time_ns\":1000", "\"time_ns\":1e400"), "no JSON at column"},
      {with("\"time_ns\":1000", "\"time_ns\":9223372036854775808"),
       "9223372036854775808 is out of range"},
      {with("\"time_ns\":1000", "\"time_ns\":true"), "found a boolean"},
      {with("\"time_ns\":1000", "\"time_ns\":1000,\"time_ns\":1"),
       "'time_ns' is given twice"},
      {with("\"threads\":1", "\"threads\":3000000000"),
       "policy.threads: 3000000000 is out of range"},
      {with("\"outcome\":\"ok\"", "\"outcome\":\"OK\""), "'OK' is no outcome"},
      {with("\"outcome\":\"ok\"", "\"outcome\":1"), "expected a name"},
      {with("abc:1", "abc\xff:1"), "no JSON at column"},
      {with("abc:1", "abc\n:1"), "no JSON at column"},
      {with("abc:1", "\\ud800:1"), "no JSON at column"},
      {with("\"blocks\":[", "\"blocks\":[7,"),
       "record.result.blocks[0]: expected an object"},
      {with("\"blocks\":[", "\"blocks\":{\"x\":["), "expected a list"},
      {std::string(kMaxLogLineBytes + 1, ' '), "at most 8388608"},
  };
  for (const auto& [line, reason] : cases) {
    SCOPED_TRACE(line.substr(0, 200));
    EXPECT_STATUS(ParseLogLine(line), kInvalidArgument, reason);
  }
}

TEST(LogLine, LinesThatWereCutOrBentAnywhereNeverCrash) {
  const std::string good = PrintLogLine(RecordEntry());
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ParseLogLine(good.substr(0, i)).ok()) << i;
  }
  Random random(11);
  const int cases = static_cast<int>(5000 * TestScale());
  for (int i = 0; i < cases; ++i) {
    std::string bent = good;
    for (uint64_t n = 1 + random.Next() % 3; n > 0; --n) {
      bent[random.Next() % bent.size()] = static_cast<char>(random.Next());
    }
    const auto read = ParseLogLine(bent);
    if (read.ok()) EXPECT_OK(ParseLogLine(PrintLogLine(*read)));
  }
}

}  // namespace
}  // namespace regatta::testing
