// What every search strategy must do, on real spaces; a strategy joins by
// standing in THE list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "server/search/search_strategy.h"
#include "tests/server/support/spaces.h"

namespace regatta {
namespace {

using testing::ScaledSeeds;
using testing::SpaceOf;

constexpr char kMatmul[] = "matmul(m=512,n=512,k=512)";
// A dozen combinations of knobs.
constexpr char kTiny[] = "C[i] = A[i] + B[i] where i=64";

// A landscape with one lowest point: each knob costs by how many doublings it
// is away from the goal's.
class Landscape {
 public:
  Landscape(const Space& space, uint64_t seed) {
    Random random(seed);
    goal_ = *space.Sample(random);
  }

  int64_t TimeNs(const Schedule& schedule) const {
    double doublings = 0;
    if (schedule.sketch != goal_.sketch) {
      doublings = 20;
    } else {
      for (size_t p = 0; p < goal_.parts.size(); ++p) {
        for (size_t k = 0; k < goal_.parts[p].size(); ++k) {
          doublings += std::abs(std::log2(schedule.parts[p][k] + 1.0) -
                                std::log2(goal_.parts[p][k] + 1.0));
        }
      }
    }
    return static_cast<int64_t>(1'000'000 * (1 + 0.2 * doublings));
  }

 private:
  Schedule goal_;
};

std::unique_ptr<SearchStrategy> Make(std::string_view name,
                                     SearchContext context) {
  return FindSearchStrategy(name)->create(std::move(context));
}

// The best time after `budget` trials with up to `parallel` out at once.
int64_t BestAfter(SearchStrategy& strategy, const Landscape& landscape,
                  int budget, int parallel) {
  std::deque<Schedule> out;
  int64_t best = INT64_MAX;
  for (int told = 0; told < budget;) {
    for (Schedule& s : strategy.Ask(parallel - static_cast<int>(out.size()))) {
      out.push_back(std::move(s));
    }
    if (out.empty()) break;
    const int64_t time_ns = landscape.TimeNs(out.front());
    strategy.Tell({out.front(), true, time_ns, false});
    best = std::min(best, time_ns);
    out.pop_front();
    ++told;
  }
  return best;
}

// How many times faster than random search's best a strategy's best is after a
// hundred trials: the median over several landscapes.
double MedianGainOverRandom(std::string_view name) {
  const auto space = SpaceOf(kMatmul);
  const int seeds = ScaledSeeds(15);
  std::vector<double> gains;
  for (int seed = 0; seed < seeds; ++seed) {
    const Landscape landscape(*space, 1000 + seed);
    SearchContext context;
    context.space = space;
    context.seed = seed;
    auto strategy = Make(name, context);
    auto random = Make("random", context);
    gains.push_back(
        static_cast<double>(BestAfter(*random, landscape, 100, 4)) /
        static_cast<double>(BestAfter(*strategy, landscape, 100, 4)));
  }
  std::nth_element(gains.begin(), gains.begin() + seeds / 2, gains.end());
  return gains[seeds / 2];
}

class SearchContract : public ::testing::TestWithParam<StrategyInfo> {
 protected:
  std::unique_ptr<SearchStrategy> Create(SearchContext context) {
    return GetParam().create(std::move(context));
  }
  std::unique_ptr<SearchStrategy> Create(std::shared_ptr<const Space> space,
                                         uint64_t seed = 1) {
    SearchContext context;
    context.space = std::move(space);
    context.seed = seed;
    return Create(std::move(context));
  }
};

TEST_P(SearchContract, SameSeedAndAnswersGiveTheSameSchedules) {
  const auto space = SpaceOf(kMatmul);
  const Landscape landscape(*space, 5);
  const auto run = [&](uint64_t seed) {
    auto strategy = Create(space, seed);
    std::vector<std::string> asked;
    std::deque<Schedule> out;
    for (int i = 0; i < 120; ++i) {
      for (Schedule& s : strategy->Ask(4 - static_cast<int>(out.size()))) {
        asked.push_back(space->Print(s));
        out.push_back(std::move(s));
      }
      const bool ok = i % 5 != 0;
      strategy->Tell(
          {out.front(), ok, ok ? landscape.TimeNs(out.front()) : 0, false});
      out.pop_front();
    }
    return asked;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST_P(SearchContract, NoScheduleIsAskedTwiceAndAllAreLegal) {
  const auto space = SpaceOf("matmul(m=127,n=193,k=511)");
  const Landscape landscape(*space, 3);
  auto strategy = Create(space);
  std::set<Schedule> seen;
  for (int i = 0; i < 300; ++i) {
    for (const Schedule& schedule : strategy->Ask(3)) {
      EXPECT_EQ(space->Refusal(schedule), std::nullopt);
      EXPECT_TRUE(seen.insert(schedule).second) << space->Print(schedule);
      strategy->Tell({schedule, true, landscape.TimeNs(schedule), false});
    }
  }
  EXPECT_EQ(seen.size(), 900u);
}

TEST_P(SearchContract, KnownAndPendingSchedulesAreNotAskedAgain) {
  const auto space = SpaceOf(kTiny);
  std::vector<Schedule> all;
  space->ForEach([&](const Schedule& schedule) {
    all.push_back(schedule);
    return true;
  });
  ASSERT_GE(all.size(), 4u);
  SearchContext context;
  context.space = space;
  context.known = {{all[0], true, 100, false}};
  context.pending = {all[2]};
  auto strategy = Create(std::move(context));
  std::vector<Schedule> rest = all;
  rest.erase(rest.begin() + 2);
  rest.erase(rest.begin());
  EXPECT_THAT(strategy->Ask(1000), ::testing::UnorderedElementsAreArray(rest));
  strategy->Tell({all[2], true, 90, false});  // what was pending comes in
  EXPECT_THAT(strategy->Ask(10), ::testing::IsEmpty());
}

TEST_P(SearchContract, LegalSeedsComeFirstInOrder) {
  const auto space = SpaceOf(kMatmul);
  SearchContext context;
  context.space = space;
  context.seeds = space->Seeds();
  context.seeds.push_back(context.seeds.front());  // twice: asked once
  ASSERT_GT(context.seeds.size(), 3u);
  const std::vector<Schedule> expected(context.seeds.begin(),
                                       context.seeds.begin() + 3);
  auto strategy = Create(std::move(context));
  EXPECT_EQ(strategy->Ask(3), expected);
}

TEST_P(SearchContract, ATinySpaceIsAskedToItsEndOnceAndThenNothingIs) {
  for (const char* text :
       {kTiny, "matmul(m=1,n=1,k=1)", "matmul(m=2,n=3,k=2)"}) {
    const auto space = SpaceOf(text);
    std::set<Schedule> legal;
    space->ForEach([&](const Schedule& schedule) {
      legal.insert(schedule);
      return true;
    });
    auto strategy = Create(space);
    std::set<Schedule> asked;
    while (true) {
      const auto batch = strategy->Ask(16);
      for (const Schedule& schedule : batch) {
        EXPECT_TRUE(asked.insert(schedule).second);
        strategy->Tell({schedule, true, 1000, false});
      }
      if (batch.empty()) break;
    }
    EXPECT_EQ(asked, legal) << text;
    EXPECT_THAT(strategy->Ask(1), ::testing::IsEmpty());
  }
}

TEST_P(SearchContract, ASpaceWhereEverythingFailsEnds) {
  const auto space = SpaceOf("matmul(m=2,n=3,k=2)");
  auto strategy = Create(space);
  size_t asked = 0;
  while (true) {
    const auto batch = strategy->Ask(8);
    if (batch.empty()) break;
    asked += batch.size();
    for (const Schedule& schedule : batch) {
      strategy->Tell({schedule, false, 0, false});
    }
  }
  EXPECT_GT(asked, 8u);
  EXPECT_LE(asked, space->Size());
}

TEST_P(SearchContract, WithdrawnSchedulesAreAskedAgainAndOthersNot) {
  const auto space = SpaceOf(kMatmul);
  auto strategy = Create(space);
  const auto first = strategy->Ask(3);
  ASSERT_EQ(first.size(), 3u);
  strategy->Tell({first[0], true, 1000, false});
  strategy->Withdraw(first[1]);
  const auto second = strategy->Ask(2);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[0], first[1]);
  EXPECT_THAT(first, ::testing::Not(::testing::Contains(second[1])));
  // The lost answer came in after all: no third time.
  strategy->Withdraw(second[0]);
  strategy->Tell({second[0], true, 1000, false});
  EXPECT_NE(strategy->Ask(1)[0], second[0]);
}

TEST_P(SearchContract, MoreIsAskedBeforeAnyAnswer) {
  auto strategy = Create(SpaceOf(kMatmul));
  EXPECT_EQ(strategy->Ask(50).size(), 50u);
  EXPECT_EQ(strategy->Ask(50).size(), 50u);
}

TEST_P(SearchContract, FailuresAndAbandonedOnesDoNotStopTheClimb) {
  const auto space = SpaceOf(kMatmul);
  const Landscape landscape(*space, 11);
  auto strategy = Create(space, 2);
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const auto batch = strategy->Ask(1);
    ASSERT_EQ(batch.size(), 1u);
    const uint64_t kind = random.Below(3);
    strategy->Tell({batch[0], kind != 0,
                    kind == 0 ? 0 : landscape.TimeNs(batch[0]), kind == 1});
  }
}

// All else holds for a strategy that learns nothing from what it is told.
TEST_P(SearchContract, IsNoWorseThanRandomSearchWithinAHundredTrials) {
  EXPECT_GE(MedianGainOverRandom(GetParam().name), 1);
}

INSTANTIATE_TEST_SUITE_P(EveryStrategy, SearchContract,
                         ::testing::ValuesIn(SearchStrategies().begin(),
                                             SearchStrategies().end()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(StrategyList, EvolutionaryIsTheDefaultAndUnknownNamesGiveNothing) {
  EXPECT_EQ(SearchStrategies().front().name, "evolutionary");
  EXPECT_EQ(FindSearchStrategy("no_such"), nullptr);
}

TEST(EvolutionarySearch, BeatsRandomSearchWithinAHundredTrials) {
  EXPECT_GT(MedianGainOverRandom("evolutionary"), 1.2);
}

}  // namespace
}  // namespace regatta
