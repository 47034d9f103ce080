// What the server counts of commits and of questions.
#include <gtest/gtest.h>

#include <map>

#include "proto/outcome_names.h"
#include "server/job/commit_stats.h"
#include "server/query/lookup_stats.h"

namespace regatta {
namespace {

// "name" or "name label" to the value; of a histogram its count.
template <typename Stats>
std::map<std::string, double> Collected(const Stats& stats) {
  MetricsPage page;
  stats.Collect(page);
  std::map<std::string, double> values;
  for (const MetricFamily& family : page.families()) {
    for (const MetricSample& sample : family.samples) {
      std::string key = family.name;
      for (const auto& [label, value] : sample.labels) key += " " + value;
      values[key] = family.kind == MetricKind::kHistogram
                        ? static_cast<double>(sample.histogram.Count())
                        : sample.value;
    }
  }
  return values;
}

TEST(CommitStats, CountsTrialsOnlyWhenTheyAreStored) {
  CommitStats stats;
  stats.Committed(absl::Milliseconds(2));
  stats.Judged(v1::OUTCOME_OK, v1::ACK_STATUS_STORED);
  stats.Judged(v1::OUTCOME_OK, v1::ACK_STATUS_STORED);
  stats.Judged(v1::OUTCOME_OK, v1::ACK_STATUS_DUPLICATE);
  stats.Judged(v1::OUTCOME_CRASHED, v1::ACK_STATUS_REJECTED);
  stats.Failed();
  stats.SetUnstored(17);
  const auto values = Collected(stats);
  EXPECT_EQ(values.at("regatta_server_trials_total ok"), 2);
  EXPECT_EQ(values.at("regatta_server_trials_total crashed"), 0);
  EXPECT_EQ(values.at("regatta_server_results_total stored"), 2);
  EXPECT_EQ(values.at("regatta_server_results_total duplicate"), 1);
  EXPECT_EQ(values.at("regatta_server_results_total rejected"), 1);
  EXPECT_EQ(values.at("regatta_server_commit_seconds"), 1);
  EXPECT_EQ(values.at("regatta_server_commit_failures_total"), 1);
  EXPECT_EQ(values.at("regatta_server_unstored_results"), 17);
  // Every outcome has its sample from the start.
  int outcomes = 0;
  for (const auto& [key, value] : values) {
    outcomes += key.starts_with("regatta_server_trials_total ") ? 1 : 0;
  }
  EXPECT_EQ(outcomes, v1::Outcome_MAX);
}

TEST(LookupStats, CountsByGradeAndRefusals) {
  LookupStats stats;
  v1::BestAnswer exact;
  exact.set_grade("exact");
  stats.Answered(exact, absl::Microseconds(50));
  stats.Answered(exact, absl::Microseconds(50));
  stats.Answered(absl::InvalidArgumentError("no"), absl::Microseconds(5));
  const auto values = Collected(stats);
  EXPECT_EQ(values.at("regatta_server_lookups_total exact"), 2);
  EXPECT_EQ(values.at("regatta_server_lookups_total refused"), 1);
  EXPECT_EQ(values.at("regatta_server_lookups_total default"), 0);
  EXPECT_EQ(values.at("regatta_server_lookup_seconds"), 3);
}

}  // namespace
}  // namespace regatta
