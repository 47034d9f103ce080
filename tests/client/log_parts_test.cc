// The parts of `regatta log`: lines, progress, T4.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "client/cli/file_output.h"
#include "client/cli/line_reader.h"
#include "client/cli/rate_progress.h"
#include "client/cli/t4_writer.h"
#include "tests/support/process.h"

namespace regatta::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ReadFile;
using testing::TempDir;
using testing::WriteFile;

std::vector<std::string> LinesOf(const std::string& bytes, size_t max_bytes) {
  TempDir dir;
  WriteFile(dir.path() + "/f", bytes);
  auto reader = LineReader::Open(dir.path() + "/f", max_bytes);
  EXPECT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->size(), static_cast<int64_t>(bytes.size()));
  std::vector<std::string> lines;
  std::string line;
  while (*reader->Next(&line)) lines.push_back(line);
  EXPECT_EQ(reader->bytes_read(), static_cast<int64_t>(bytes.size()));
  return lines;
}

TEST(LineReader, EndsLinesWhereTheyEnd) {
  EXPECT_THAT(LinesOf("", 9), ElementsAre());
  EXPECT_THAT(LinesOf("a", 9), ElementsAre("a"));
  EXPECT_THAT(LinesOf("a\n", 9), ElementsAre("a"));
  EXPECT_THAT(LinesOf("a\n\nb", 9), ElementsAre("a", "", "b"));
  EXPECT_THAT(LinesOf(std::string("a\0b\n", 4), 9),
              ElementsAre(std::string("a\0b", 3)));
}

TEST(LineReader, CutsWhatIsTooLongAndReadsOn) {
  EXPECT_THAT(LinesOf("1234\n12345678\nx\n", 4),
              ElementsAre("1234", "12345", "x"));
  // Across several reads.
  const std::string longer(700'000, 'y');
  const auto lines = LinesOf(longer + "\nend\n", 1000);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], longer.substr(0, 1001));
  EXPECT_EQ(lines[1], "end");
  EXPECT_EQ(LinesOf(longer + "\n" + longer, 700'000)[1], longer);
}

TEST(LineReader, SaysWhatItCannotRead) {
  const auto folder = LineReader::Open("/", 9);
  EXPECT_THAT(std::string(folder.status().message()),
              HasSubstr("cannot read /: Is a directory"));
  EXPECT_THAT(std::string(LineReader::Open("/none", 9).status().message()),
              HasSubstr("cannot read /none: No such file"));
}

TEST(StagedFile, GrowsBesideItsPlaceAndAppearsWhole) {
  TempDir dir;
  const std::string path = dir.path() + "/f";
  {
    auto file = StagedFile::Create(path, FileUse::kData);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append("one ").ok());
    ASSERT_TRUE(file->Append("two").ok());
    EXPECT_NE(access(path.c_str(), F_OK), 0);
    ASSERT_TRUE(file->Commit().ok());
  }
  EXPECT_EQ(ReadFile(path), "one two");
  {
    auto file = StagedFile::Create(path, FileUse::kData);
    ASSERT_TRUE(file->Append("half").ok());
  }
  EXPECT_EQ(ReadFile(path), "one two");
  EXPECT_EQ(std::system(("test $(ls " + dir.path() + " | wc -l) = 1").c_str()),
            0);
}

TEST(RateProgress, ShowsRateAndTimeLeftNowAndThen) {
  FakeClock clock;
  std::ostringstream out;
  RateProgress progress("lines", /*terminal=*/false, clock, out);
  progress.Update("importing", 0, 1000);
  clock.Advance(absl::Milliseconds(500));
  progress.Update("importing", 100, 1000);
  EXPECT_EQ(out.str(), "");  // what is over soon shows nothing
  clock.Advance(absl::Milliseconds(1500));
  progress.Update("importing", 400, 1000);
  EXPECT_EQ(out.str(), "importing: 400 of 1000 lines, 200/s, 3 s left\n");
  clock.Advance(absl::Seconds(2));
  progress.Update("importing", 900, 1000);
  EXPECT_EQ(out.str(), "importing: 400 of 1000 lines, 200/s, 3 s left\n");
  clock.Advance(absl::Seconds(6));
  progress.Update("importing", 950, 0);  // the total is not known
  EXPECT_THAT(out.str(), HasSubstr("\nimporting: 950 lines, 95.0/s\n"));
}

v1::LoggedRecord Record(v1::Outcome outcome) {
  v1::LoggedRecord record;
  record.set_recorded_unix_ms(1'700'000'000'123);
  v1::TrialResult& result = *record.mutable_result();
  result.set_outcome(outcome);
  v1::TrialSpec& spec = *result.mutable_spec();
  spec.set_workload("softmax(rows=2,cols=3)");
  spec.set_device_class("zen4-2c");
  spec.mutable_policy()->set_threads(2);
  spec.mutable_policy()->set_cache(v1::CACHE_STATE_WARM);
  spec.mutable_schedule()->set_text("pack:2{b=on}+tile{mi=8,ni=x4}+tile{mi=1}");
  result.mutable_phases()->set_build_ns(2'000'000);
  if (outcome == v1::OUTCOME_OK) {
    result.set_time_ns(1'500'000);
    v1::Block* block = result.add_blocks();
    block->set_calls(2);
    block->set_elapsed_ns(3'000'000);
    block = result.add_blocks();
    block->set_calls(2);
    block->set_elapsed_ns(9'000'000);
    block->set_throttled(true);
  }
  return record;
}

TEST(T4Writer, WritesConfigurationsTimesAndWhatWasInvalid) {
  T4Writer writer;
  std::string text = writer.Begin("feed");
  text += writer.Add(Record(v1::OUTCOME_OK));
  text += writer.Add(Record(v1::OUTCOME_AGENT_LOST));
  text += writer.Add(Record(v1::OUTCOME_DUPLICATE_BINARY));
  const std::vector<std::pair<v1::Outcome, std::string>> words = {
      {v1::OUTCOME_COMPILE_ERROR, "compile"},
      {v1::OUTCOME_TIMED_OUT, "timeout"},
      {v1::OUTCOME_WRONG_RESULT, "correctness"},
      {v1::OUTCOME_IMPLAUSIBLE, "correctness"},
      {v1::OUTCOME_CRASHED, "runtime"},
      {v1::OUTCOME_OUT_OF_MEMORY, "runtime"},
      {v1::OUTCOME_SANDBOX_VIOLATION, "runtime"},
      {v1::OUTCOME_REFUSED, "constraints"}};
  for (const auto& [outcome, word] : words) text += writer.Add(Record(outcome));
  text += writer.End();
  EXPECT_EQ(writer.results(), 9);
  EXPECT_EQ(writer.left_out(), 2);
  const auto document = nlohmann::json::parse(text);
  EXPECT_EQ(document["schema_version"], "1.0.0");
  EXPECT_EQ(document["metadata"]["log_id"], "feed");
  ASSERT_EQ(document["results"].size(), 9u);
  const auto& good = document["results"][0];
  const nlohmann::json configuration = {{"workload", "softmax(rows=2,cols=3)"},
                                        {"device_class", "zen4-2c"},
                                        {"threads", 2},
                                        {"cache", "warm"},
                                        {"sketch", "pack:2+tile+tile"},
                                        {"pack:2.b", "on"},
                                        {"tile.mi", 8},
                                        {"tile.ni", "x4"},
                                        {"tile#2.mi", 1}};
  EXPECT_EQ(good["configuration"], configuration);
  EXPECT_EQ(good["timestamp"], "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(good["measurements"][0]["value"], 1.5);
  EXPECT_EQ(good["times"]["runtimes"], nlohmann::json::array({1.5}));
  EXPECT_EQ(good["times"]["compilation"], 2.0);
  EXPECT_EQ(good["correctness"], 1);
  for (size_t i = 0; i < words.size(); ++i) {
    const auto& bad = document["results"][i + 1];
    EXPECT_EQ(bad["invalidity"], words[i].second);
    EXPECT_EQ(bad["correctness"], 0);
    EXPECT_TRUE(bad["measurements"][0]["value"].is_string());
  }
  T4Writer empty;
  EXPECT_EQ(nlohmann::json::parse(empty.Begin("x") + empty.End())["results"],
            nlohmann::json::array());
}

}  // namespace
}  // namespace regatta::cli
