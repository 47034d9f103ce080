// The part of the contract about best-known answers.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/random.h"
#include "tests/storage/records.h"
#include "tests/storage/tuning_log_contract.h"
#include "tests/support/process.h"

namespace regatta::testing {

using ::testing::ElementsAre;

TEST_P(TuningLogContract, KnowsNothingOfAKeyWithoutATimedResult) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  const v1::TrialResult ok = OkResult("1/0/0", workload, "a", 1000);
  v1::TrialResult abandoned = ok;
  abandoned.set_abandoned(true);
  v1::TrialResult untimed = OkResult("1/0/1", workload, "b", 1000);
  untimed.set_time_ns(0);
  v1::TrialResult wrong = OkResult("1/0/2", workload, "c", 1);
  wrong.set_outcome(v1::OUTCOME_WRONG_RESULT);
  v1::TrialResult throttled = OkResult("1/0/3", workload, "d", 1);
  throttled.set_outcome(v1::OUTCOME_THROTTLED);
  ASSERT_OK(log_->Append({abandoned, untimed, wrong, throttled}, 1));
  const auto best = log_->Best(KeyFor(workload));
  ASSERT_OK(best);
  EXPECT_FALSE(best->has_value());
  EXPECT_FALSE(log_->Best(KeyFor(Matmul(1, 2, 3)))->has_value());
  EXPECT_TRUE(log_->BestOfWorkload(workload.key)->empty());
}

TEST_P(TuningLogContract, TheFastestVerifiedRecordIsBestUntilOneIsPublished) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  v1::TrialResult standard = OkResult("1/0/0", workload, "default", 2000);
  standard.mutable_spec()->set_kind(v1::TRIAL_KIND_DEFAULT);
  ASSERT_OK(log_->Append({standard}, 10));
  EXPECT_EQ((*log_->Best(KeyFor(workload)))->time_ns, 2000);

  const v1::TrialResult slow = OkResult("1/0/1", workload, "slow", 1500);
  const v1::TrialResult fast = OkResult("1/0/2", workload, "fast", 1000);
  const v1::TrialResult tie = OkResult("1/0/3", workload, "tie", 1000);
  ASSERT_OK(log_->Append({slow, fast, tie}, 20));
  BestKnown best = **log_->Best(KeyFor(workload));
  EXPECT_EQ(best.record.result.spec().trial_id(), "1/0/2");
  EXPECT_FALSE(best.confirmed);
  EXPECT_EQ(best.default_ns, 2000);
  EXPECT_EQ(best.since_unix_ms, 20);
  EXPECT_EQ(best.speedup, 0);

  Publication verdict = Verdict(slow, 1450);
  verdict.low_ns = 1400;
  verdict.high_ns = 1490;
  verdict.default_ns = 2030;
  verdict.speedup = 1.4;
  verdict.speedup_low = 1.3;
  verdict.speedup_high = 1.5;
  ASSERT_OK(log_->Publish(verdict, 30));
  ASSERT_OK(log_->Append({OkResult("1/0/4", workload, "later", 1)}, 40));
  best = **log_->Best(KeyFor(workload));
  EXPECT_EQ(best.record.result.spec().trial_id(), "1/0/1");
  EXPECT_TRUE(best.confirmed);
  EXPECT_EQ(best.time_ns, 1450);
  EXPECT_EQ(best.low_ns, 1400);
  EXPECT_EQ(best.high_ns, 1490);
  EXPECT_EQ(best.default_ns, 2030);
  EXPECT_EQ(best.speedup_low, 1.3);
  EXPECT_EQ(best.since_unix_ms, 30);
  ASSERT_OK(log_->Publish(Verdict(fast, 990), 50));
  EXPECT_EQ((*log_->Best(KeyFor(workload)))->time_ns, 990);
}

TEST_P(TuningLogContract, AKernelThatEverGaveAWrongResultIsNotBest) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  const v1::TrialResult good = OkResult("1/0/0", workload, "good", 2000);
  const v1::TrialResult flaky = OkResult("1/0/1", workload, "flaky", 1000);
  ASSERT_OK(log_->Append({good, flaky}, 1));
  ASSERT_OK(log_->Publish(Verdict(good, 2000), 2));
  ASSERT_OK(log_->Publish(Verdict(flaky, 1000), 3));
  v1::TrialResult wrong = flaky;
  wrong.mutable_spec()->set_trial_id("1/0/2");
  wrong = Failed(wrong, v1::OUTCOME_WRONG_RESULT);
  ASSERT_OK(log_->Append({wrong}, 4));
  EXPECT_EQ((*log_->Best(KeyFor(workload)))->time_ns, 2000);
  EXPECT_STATUS(log_->Publish(Verdict(flaky, 900), 5), kFailedPrecondition,
                "wrong result");
  // The same schedule from a compiler that makes other code stands for itself.
  v1::TrialResult mended = flaky;
  mended.mutable_spec()->set_trial_id("1/0/3");
  mended.set_binary_hash(Sha256Hex("mended"));
  ASSERT_OK(log_->Append({mended}, 6));
  EXPECT_OK(log_->Publish(Verdict(mended, 1000), 7));
  EXPECT_EQ((*log_->Best(KeyFor(workload)))->record.result.spec().trial_id(),
            "1/0/3");
}

TEST_P(TuningLogContract, RefusesAPublicationThatMakesNoSense) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  const v1::TrialResult ok = OkResult("1/0/0", workload, "a", 1000);
  v1::TrialResult abandoned = OkResult("1/0/1", workload, "b", 10);
  abandoned.set_abandoned(true);
  ASSERT_OK(log_->Append({ok, abandoned}, 1));
  Publication verdict = Verdict(ok, 1000);
  verdict.trial_id = "9/9/9";
  EXPECT_STATUS(log_->Publish(verdict, 2), kNotFound, "9/9/9");
  verdict = Verdict(ok, 1000);
  verdict.key.threads = 2;
  EXPECT_STATUS(log_->Publish(verdict, 2), kInvalidArgument, "another");
  verdict = Verdict(ok, 0);
  EXPECT_STATUS(log_->Publish(verdict, 2), kInvalidArgument, "0 ns");
  verdict = Verdict(ok, 1000);
  verdict.low_ns = 1001;
  verdict.high_ns = 1002;
  EXPECT_STATUS(log_->Publish(verdict, 2), kInvalidArgument, "interval");
  EXPECT_STATUS(log_->Publish(Verdict(abandoned, 10), 2), kFailedPrecondition,
                "abandoned");
  EXPECT_FALSE((*log_->Best(KeyFor(workload)))->confirmed);
}

TEST_P(TuningLogContract, DerivesTheIntervalFromTheBlocksOfTheRecord) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  v1::TrialResult result = OkResult("1/0/0", workload, "a", 105);
  // Ten draws: P(binomial(10, 1/2) < 2) = 11/1024 = 1.07 %, < 3: 5.5 %, so
  // from the second smallest to the second largest.
  SetBlocks(result, {109, 100, 101, 108, 102, 107, 103, 106, 104, 105});
  v1::Block& hot = *result.add_blocks();
  hot.set_calls(1);
  hot.set_elapsed_ns(1);
  hot.set_throttled(true);
  ASSERT_OK(log_->Append({result}, 1));
  BestKnown best = **log_->Best(KeyFor(workload));
  EXPECT_EQ(best.low_ns, 101);
  EXPECT_EQ(best.high_ns, 108);
  EXPECT_EQ(best.samples, 10);

  // Five draws cannot give 95 %: unknown.
  v1::TrialResult few = OkResult("1/0/1", workload, "b", 50);
  SetBlocks(few, {48, 49, 50, 51, 52});
  ASSERT_OK(log_->Append({few}, 1));
  best = **log_->Best(KeyFor(workload));
  EXPECT_EQ(best.low_ns, 50);
  EXPECT_EQ(best.high_ns, 50);
}

TEST_P(TuningLogContract, CountsEvidenceOverAllRecordsOfTheSchedule) {
  const WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  const v1::TrialResult a = OkResult("1/0/0", workload, "a", 1000);
  v1::TrialResult b = OkResult("1/0/1", workload, "a", 1100);
  b.set_device_id("board-2");
  v1::TrialResult other = OkResult("1/0/2", workload, "other", 1500);
  other.set_device_id("board-3");
  v1::TrialResult broken =
      Failed(OkResult("1/0/3", workload, "a", 1000), v1::OUTCOME_AGENT_LOST);
  broken.set_device_id("board-4");
  v1::TrialResult elsewhere = OkResult("1/0/4", workload, "a", 1000);
  elsewhere.set_device_class("other-class");
  elsewhere.set_device_id("board-5");
  v1::TrialResult d1 = OkResult("1/0/5", workload, "default", 3000);
  v1::TrialResult d2 = OkResult("1/0/6", workload, "default", 3101);
  d1.mutable_spec()->set_kind(v1::TRIAL_KIND_DEFAULT);
  d2.mutable_spec()->set_kind(v1::TRIAL_KIND_DEFAULT);
  ASSERT_OK(log_->Append({a, b, other, broken, elsewhere, d1, d2}, 1));
  const BestKnown best = **log_->Best(KeyFor(workload));
  EXPECT_EQ(best.samples, 6);
  EXPECT_EQ(best.boards, 2);
  EXPECT_NEAR(best.default_ns, 3050, 1);
  EXPECT_EQ(log_->BestOfWorkload(workload.key)->size(), 2u);
}

TEST_P(TuningLogContract, FindsNeighboursNearestFirst) {
  const WorkloadInfo here = Matmul(512, 512, 512);
  // Distances from 512: 3, 1, sqrt(2) and, for another structure, 0.
  const std::vector<WorkloadInfo> others = {
      Matmul(64, 512, 512), Matmul(512, 1024, 512), Matmul(256, 256, 512)};
  WorkloadInfo foreign = Matmul(512, 512, 511);
  foreign.structure = "another";
  int ordinal = 0;
  const auto add = [&](const WorkloadInfo& workload) {
    ASSERT_OK(log_->PutWorkload(workload));
    ASSERT_OK(log_->Append(
        {OkResult(absl::StrCat("1/0/", ordinal++), workload, "s", 100)}, 1));
  };
  for (const WorkloadInfo& other : others) add(other);
  add(foreign);
  add(here);
  ASSERT_OK(log_->PutWorkload(Matmul(512, 512, 510)));  // nothing measured
  const auto keys = [&](const BestKey& key, int limit) {
    std::vector<std::string> found;
    const auto neighbours = log_->BestOfNeighbours(here, key, limit);
    EXPECT_OK(neighbours);
    for (const BestKnown& best : *neighbours) {
      found.push_back(best.key.workload_key);
    }
    return found;
  };
  EXPECT_THAT(keys(KeyFor(here), 9),
              ElementsAre("matmul-512-1024-512", "matmul-256-256-512",
                          "matmul-64-512-512"));
  EXPECT_THAT(keys(KeyFor(here), 1), ElementsAre("matmul-512-1024-512"));
  EXPECT_THAT(keys(KeyFor(here), 0), ElementsAre());
  EXPECT_THAT(keys(KeyFor(here, "another-class"), 9), ElementsAre());
}

TEST_P(TuningLogContract, NeighboursAtOneDistanceComeByKey) {
  int ordinal = 0;
  // 128 and 512 are both one octave from 256; put in the other order.
  for (const int64_t m : {512, 128}) {
    ASSERT_OK(log_->PutWorkload(Matmul(m, 4, 4)));
    ASSERT_OK(log_->Append(
        {OkResult(absl::StrCat("1/0/", ordinal++), Matmul(m, 4, 4), "s", 9)},
        1));
  }
  const WorkloadInfo here = Matmul(256, 4, 4);
  const auto found = log_->BestOfNeighbours(here, KeyFor(here), 9);
  ASSERT_OK(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].key.workload_key, "matmul-128-4-4");
}

TEST_P(TuningLogContract, VisitsEveryBestRowInOrderOfItsKey) {
  struct Row {
    WorkloadInfo workload;
    const char* device_class;
    int threads;
  };
  const Row rows[] = {{Matmul(8, 4, 4), "b", 1},
                      {Matmul(4, 4, 4), "b", 2},
                      {Matmul(4, 4, 4), "b", 1},
                      {Matmul(4, 4, 4), "a", 7}};
  int ordinal = 0;
  for (const Row& row : rows) {
    ASSERT_OK(log_->PutWorkload(row.workload));
    ++ordinal;
    v1::TrialResult result = OkResult(absl::StrCat("1/0/", ordinal),
                                      row.workload, "s", 100 + ordinal);
    result.set_device_class(row.device_class);
    result.mutable_spec()->mutable_policy()->set_threads(row.threads);
    result.mutable_spec()->set_target(absl::StrCat("target ", ordinal));
    result.mutable_environment()->set_measure_protocol("7");
    ASSERT_OK(log_->Append({result}, ordinal));
  }
  // Measured, but nothing that could be the best.
  ASSERT_OK(log_->PutWorkload(Matmul(2, 2, 2)));
  ASSERT_OK(log_->Append({Failed(OkResult("1/0/99", Matmul(2, 2, 2), "s", 1),
                                 v1::OUTCOME_CRASHED)},
                         1));

  std::vector<std::string> seen, expected;
  ASSERT_OK(log_->ForEachBest(
      [&](const WorkloadInfo& workload, const BestKnown& best) {
        EXPECT_EQ(workload.key, best.key.workload_key);
        EXPECT_EQ(workload.structure, Matmul(1, 1, 1).structure);
        EXPECT_EQ(workload.extents[0], best.record.extents[0]);
        seen.push_back(Describe(best));
        return true;
      }));
  for (const int i : {3, 2, 1, 0}) {
    BestKey key = KeyFor(rows[i].workload, rows[i].device_class);
    key.threads = rows[i].threads;
    const auto best = log_->Best(key);
    ASSERT_OK(best);
    ASSERT_TRUE(best->has_value());
    expected.push_back(Describe(**best));
  }
  EXPECT_EQ(seen, expected);
  int visits = 0;
  ASSERT_OK(log_->ForEachBest(
      [&](const WorkloadInfo&, const BestKnown&) { return ++visits < 2; }));
  EXPECT_EQ(visits, 2);

  const auto facts = log_->FactsOfClasses();
  ASSERT_OK(facts);
  EXPECT_THAT(*facts, ElementsAre(ClassFacts{"a", "target 4", "7"},
                                  ClassFacts{"b", "target 3", "7"}));
}

TEST_P(TuningLogContract, AWorkloadMayBePutAgain) {
  WorkloadInfo workload = Matmul(8, 8, 8);
  ASSERT_OK(log_->PutWorkload(workload));
  ASSERT_OK(log_->Append({OkResult("1/0/0", workload, "a", 10)}, 1));
  workload.family = "contraction";
  ASSERT_OK(log_->PutWorkload(workload));
  EXPECT_EQ((*log_->Best(KeyFor(workload)))->record.family, "contraction");
  workload.extents = {8, 0, 8};
  EXPECT_STATUS(log_->PutWorkload(workload), kInvalidArgument, "extent of 0");
  workload.key = "";
  EXPECT_STATUS(log_->PutWorkload(workload), kInvalidArgument, "no key");
}

namespace {

// The rule of tuning_log.h, the slow way: every answer from all of history.
struct History {
  std::vector<v1::TrialResult> records;
  std::vector<Publication> publications;

  bool Disproved(const v1::TrialResult& r) const {
    return std::any_of(records.begin(), records.end(), [&](const auto& w) {
      return w.outcome() == v1::OUTCOME_WRONG_RESULT &&
             w.device_class() == r.device_class() &&
             w.spec().schedule().text() == r.spec().schedule().text() &&
             w.binary_hash() == r.binary_hash();
    });
  }
  bool Fit(const v1::TrialResult& r) const {
    return r.outcome() == v1::OUTCOME_OK && !r.abandoned() && r.time_ns() > 0 &&
           !Disproved(r);
  }
  const v1::TrialResult* Find(const std::string& trial_id) const {
    for (const auto& r : records) {
      if (r.spec().trial_id() == trial_id) return &r;
    }
    return nullptr;
  }
  // "TRIAL confirmed SAMPLES", or "".
  std::string Best(const std::string& device_class) const {
    const v1::TrialResult* best = nullptr;
    bool confirmed = false;
    for (auto p = publications.rbegin(); p != publications.rend(); ++p) {
      if (p->key.device_class == device_class && Fit(*Find(p->trial_id))) {
        best = Find(p->trial_id);
        confirmed = true;
        break;
      }
    }
    for (const auto& r : records) {
      if (confirmed) break;
      if (r.device_class() != device_class || !Fit(r)) continue;
      if (best == nullptr || r.time_ns() < best->time_ns()) best = &r;
    }
    if (best == nullptr) return "";
    int samples = 0;
    for (const auto& r : records) {
      if (r.device_class() == device_class && r.outcome() == v1::OUTCOME_OK &&
          r.spec().schedule().text() == best->spec().schedule().text()) {
        samples += r.blocks_size();
      }
    }
    return absl::StrCat(best->spec().trial_id(), " ", confirmed, " ", samples);
  }
};

v1::TrialResult RandomResult(Random& random, int ordinal,
                             const WorkloadInfo& workload) {
  v1::TrialResult result =
      OkResult(absl::StrCat("1/0/", ordinal), workload,
               absl::StrCat("s", random.Below(6)), 1 + random.Below(12));
  result.set_device_class(random.Below(2) == 0 ? "a" : "b");
  result.set_binary_hash(Sha256Hex(absl::StrCat(random.Below(2))));
  switch (random.Below(8)) {
    case 0:
      return Failed(result, v1::OUTCOME_CRASHED);
    case 1:
      return Failed(result, v1::OUTCOME_WRONG_RESULT);
    case 2:
      result.set_abandoned(true);
      return result;
    case 3:
      result.set_time_ns(0);
      return result;
    default:
      return result;
  }
}

}  // namespace

TEST_P(TuningLogContract, RandomHistoriesGiveTheAnswerOfTheRuleAndOfARebuild) {
  const int histories = std::max(1, static_cast<int>(10 * TestScale()));
  int answers = 0, fallbacks = 0;
  for (int seed = 0; seed < histories; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const WorkloadInfo workload = Matmul(8, 8, 8 + seed);
    ASSERT_OK(log_->PutWorkload(workload));
    History history;
    for (int step = 0; step < 30; ++step) {
      const int ordinal = 1000 * seed + step;
      if (random.Below(3) == 0 && !history.records.empty()) {
        const auto& r = history.records[random.Below(history.records.size())];
        const Publication verdict = Verdict(r, 1 + random.Below(12));
        const bool fits = history.Fit(r);
        ASSERT_EQ(log_->Publish(verdict, step).ok(), fits);
        if (fits) history.publications.push_back(verdict);
      } else if (random.Below(6) == 0 && !history.records.empty()) {
        // A trial that is reported again, even with another outcome.
        v1::TrialResult again = RandomResult(random, ordinal, workload);
        again.mutable_spec()->set_trial_id(
            history.records[random.Below(history.records.size())]
                .spec()
                .trial_id());
        ASSERT_EQ(log_->Append({again}, step).value(),
                  std::vector{AppendStatus::kDuplicate});
      } else {
        const v1::TrialResult r = RandomResult(random, ordinal, workload);
        ASSERT_OK(log_->Append({r}, step));
        history.records.push_back(r);
      }
      for (const std::string device_class : {"a", "b"}) {
        const std::string expected = history.Best(device_class);
        const auto best = log_->Best(KeyFor(workload, device_class));
        ASSERT_OK(best);
        const std::string got =
            !best->has_value()
                ? ""
                : absl::StrCat((*best)->record.result.spec().trial_id(), " ",
                               (*best)->confirmed, " ", (*best)->samples);
        ASSERT_EQ(got, expected) << "step " << step;
        answers += !got.empty();
        fallbacks += !got.empty() && !history.publications.empty() &&
                     !(*best)->confirmed;
      }
    }
    const auto before = log_->BestOfWorkload(workload.key).value();
    ASSERT_OK(log_->RebuildBest(nullptr));
    const auto after = log_->BestOfWorkload(workload.key).value();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(Describe(before[i]), Describe(after[i]));
    }
  }
  // The histories reached what they are there for.
  EXPECT_GT(answers, 100);
  EXPECT_GT(fallbacks, 0);
}

}  // namespace regatta::testing
