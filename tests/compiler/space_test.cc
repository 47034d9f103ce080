// Spaces as a whole: texts, sampling, neighbours, defaults.
#include "compiler/space/space.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/compiler/space_support.h"

namespace regatta {
namespace {

constexpr const char* kFused =
    "C[i,j] = sum(k) A[i,k] * B[k,j]; D[i,j] = max(C[i,j] + b[j], 0) where "
    "i=30, j=40, k=50";
constexpr const char* kWorkloads[] = {
    kFused,
    "matmul(m=64,n=96,k=80)",
    "matmul(m=1,n=1,k=1)",
    "matmul(m=1,n=200,k=40)",
    "conv2d(n=1,h=14,w=14,ci=16,co=24,kh=3,kw=3,stride=1,pad=1)",
    "softmax(rows=12,cols=100)",
};

std::string Random(regatta::Random& random, std::string_view alphabet,
                   int length) {
  std::string text;
  for (int i = 0; i < length; ++i) {
    text += alphabet[random.Below(alphabet.size())];
  }
  return text;
}

TEST(SpaceTest, TextsRoundTrip) {
  for (const char* workload : kWorkloads) {
    for (int threads : {1, 4}) {
      const Space space = SpaceOf(workload, kAvx512, threads);
      regatta::Random random(3);
      for (int i = 0; i < 1000; ++i) {
        const auto schedule = space.Sample(random);
        ASSERT_TRUE(schedule.has_value()) << workload;
        const std::string text = space.Print(*schedule);
        const auto parsed = space.Parse(text);
        ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status().ToString();
        ASSERT_EQ(*parsed, *schedule) << text;
        ASSERT_EQ(space.Print(*parsed), text);
      }
    }
  }
}

TEST(SpaceTest, KnobsMayStandInAnyOrder) {
  const Space space = SpaceOf("matmul(m=64,n=64,k=64)");
  const std::string text = space.Print(space.Default());
  const size_t open = text.find('{'), comma = text.find(',');
  // The first knob moved to the end.
  const std::string moved = absl::StrCat(
      text.substr(0, open + 1), text.substr(comma + 1, text.size() - comma - 2),
      ",", text.substr(open + 1, comma - open - 1), "}");
  ASSERT_NE(moved, text);
  const auto parsed = space.Parse(moved);
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(*parsed, space.Default());
}

TEST(SpaceTest, WrongTextsSayWhatIsWrongAndWhere) {
  const Space space = SpaceOf("matmul(m=64,n=64,k=64)");
  const std::string good = space.Print(space.Default());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << good;
    return text.replace(at, from.size(), std::string(to));
  };
  const struct {
    std::string text;
    std::vector<std::string> says;
  } kCases[] = {
      {"", {"character 1", "a part's name"}},
      {"nonsense{", {"character 10", "a knob's name"}},
      {"nonsense", {"'{'"}},
      {"nonsense{}", {"nonsense", "contraction", "loops"}},
      {"contraction", {"'{'"}},
      {good + "+", {"a part's name"}},
      {good + "x", {"'+' or the end"}},
      {good + "+" + good, {"no schedules of the form"}},
      {good.substr(0, good.size() - 1), {"(the end)"}},
      {"contraction{}", {"contraction", "knob vec is missing"}},
      {with("mr=", "mq="), {"unknown knob 'mq'", "mr"}},
      {with("nv=2", "nv=777"), {"knob nv", "'777'", "choices: 1 2 3"}},
      {with("nv=2", "nv=two"), {"knob nv", "'two'"}},
      {with("nv=2", "nv="), {"a knob's value"}},
      {with("nv=2", "nv=2,nv=2"), {"nv is given twice"}},
      {with("nv=2", "nv =2"), {"'='"}},
      {with("order=nkm", "order=0"), {"knob order", "nkm"}},
      {"contraction:1" + good.substr(11), {"contraction:1"}},
      {std::string(100'000, 'a'), {"100000 bytes"}},
  };
  for (const auto& c : kCases) {
    const auto parsed = space.Parse(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    const std::string message(parsed.status().message());
    for (const std::string& part : c.says) {
      EXPECT_NE(message.find(part), std::string::npos)
          << "'" << c.text.substr(0, 80) << "' gave: " << message;
    }
    EXPECT_LT(message.size(), 600u) << message;
  }
}

TEST(SpaceTest, GarbageIsRefusedAndNeverFatal) {
  const Space space = SpaceOf("softmax(rows=5,cols=40)");
  const std::string good = space.Print(space.Default());
  regatta::Random random(11);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    const size_t at = random.Below(text.size());
    text.replace(at, random.Below(4),
                 Random(random, "{}+,=:az09_ \n\xff", random.Below(4)));
    const auto parsed = space.Parse(text);
    if (parsed.ok()) ++accepted;
    static_cast<void>(space.Adapt(text));
  }
  // Unchanged texts, and an occasional legal value.
  EXPECT_LT(accepted, 1000);
}

TEST(SpaceTest, RefusalsNameTheConstraint) {
  const Space space = SpaceOf("matmul(m=64,n=64,k=64)", kAvx2);
  const struct {
    const char* text;
    const char* refusal;
  } kCases[] = {
      {"contraction{vec=8,mr=14,nv=4,unroll=1,kc=all,mc=all,nc=all,pack_a=none,"
       "pack_b=none,order=nkm,inner=nm}",
       "register_budget: 14*4+4+1 = 61 of 16 vector registers"},
      {"contraction{vec=8,mr=1,nv=6,unroll=8,kc=all,mc=all,nc=all,pack_a=none,"
       "pack_b=none,order=nkm,inner=nm}",
       nullptr},
      {"loops{vec=8,vectors=8,rows=8,unroll=1,block=all}",
       "register_budget: 8*8+8 = 72 of 16 vector registers"},
  };
  for (const auto& c : kCases) {
    const auto parsed = space.Parse(c.text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
    const auto refusal = space.Refusal(*parsed);
    if (c.refusal == nullptr) {
      EXPECT_EQ(refusal, std::nullopt);
    } else {
      ASSERT_TRUE(refusal.has_value()) << c.text;
      EXPECT_EQ(*refusal, c.refusal);
    }
  }
}

TEST(SpaceTest, EveryConstraintIsReachedByName) {
  std::set<std::string> names;
  for (const char* workload :
       {"matmul(m=9,n=20,k=1000)", "matmul(m=64,n=64,k=3)",
        "conv2d(n=1,h=5,w=20,ci=3,co=40,kh=3,kw=3,pad=1)",
        "softmax(rows=3,cols=40)"}) {
    const Space space = SpaceOf(workload, kAvx2, /*threads=*/2);
    regatta::Random random(5);
    for (int i = 0; i < 4000; ++i) {
      // Unconstrained points: knob values from unrelated legal schedules.
      const auto other = space.Sample(random), third = space.Sample(random);
      if (!other || !third || other->sketch != third->sketch) continue;
      Schedule mixed = *other;
      for (size_t p = 0; p < mixed.parts.size(); ++p) {
        for (size_t k = 0; k < mixed.parts[p].size(); ++k) {
          if (random.Below(2) == 0) mixed.parts[p][k] = third->parts[p][k];
        }
      }
      if (const auto refusal = space.Refusal(mixed)) {
        names.insert(refusal->substr(0, refusal->find(':')));
      }
    }
  }
  for (const char* name : {"register_budget", "vectors_fit", "rows_fit",
                           "unroll_fits", "code_size", "parallel_loop"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
}

TEST(SpaceTest, SamplesAreLegalAndFollowTheSeed) {
  for (const char* workload : kWorkloads) {
    const Space space = SpaceOf(workload);
    regatta::Random a(42), b(42), c(43);
    std::vector<Schedule> from_a, from_b, from_c;
    for (int i = 0; i < 200; ++i) {
      from_a.push_back(*space.Sample(a));
      from_b.push_back(*space.Sample(b));
      from_c.push_back(*space.Sample(c));
      ASSERT_EQ(space.Refusal(from_a.back()), std::nullopt);
    }
    EXPECT_EQ(from_a, from_b);
    if (space.Size() > 1000) {
      EXPECT_NE(from_a, from_c);
    }
  }
}

TEST(SpaceTest, NeighboursAreLegalAndDiffer) {
  for (const char* workload : kWorkloads) {
    const Space space = SpaceOf(workload, kAvx2, /*threads=*/2);
    regatta::Random random(9);
    for (int i = 0; i < 200; ++i) {
      const Schedule a = *space.Sample(random), b = *space.Sample(random);
      if (const auto mutant = space.Mutate(a, random)) {
        EXPECT_NE(*mutant, a);
        EXPECT_EQ(mutant->sketch, a.sketch);
        ASSERT_EQ(space.Refusal(*mutant), std::nullopt);
      } else {
        EXPECT_LE(space.Size(), 64) << workload;
      }
      if (const auto child = space.Cross(a, b, random)) {
        EXPECT_EQ(child->sketch, a.sketch);
        ASSERT_EQ(space.Refusal(*child), std::nullopt);
      }
    }
  }
}

TEST(SpaceTest, WalkingVisitsEverySampleOnce) {
  for (const char* workload :
       {"C[i] = A[i] * 2 where i=40", "softmax(rows=3,cols=9)",
        "C[i] = sum(j) A[i,j] where i=6, j=40"}) {
    const Space space = SpaceOf(workload);
    std::set<Schedule> all;
    space.ForEach([&](const Schedule& schedule) {
      EXPECT_TRUE(all.insert(schedule).second) << space.Print(schedule);
      EXPECT_EQ(space.Refusal(schedule), std::nullopt);
      return all.size() < 5000;
    });
    EXPECT_LE(static_cast<double>(all.size()), space.Size());
    if (all.size() == 5000) continue;  // a prefix is enough
    EXPECT_EQ(all.count(space.Default()), 1u) << workload;
    regatta::Random random(1);
    for (int i = 0; i < 300; ++i) {
      const Schedule sample = *space.Sample(random);
      EXPECT_EQ(all.count(sample), 1u) << space.Print(sample);
    }
  }
}

TEST(SpaceTest, WalkingStopsWhenToldTo) {
  const Space space = SpaceOf("matmul(m=64,n=64,k=64)");
  int visits = 0;
  space.ForEach([&](const Schedule&) { return ++visits < 10; });
  EXPECT_EQ(visits, 10);
}

TEST(SpaceTest, DefaultsAndSeedsAreLegalForAnyShape) {
  regatta::Random random(17);
  const auto size = [&] {
    const int64_t sizes[] = {1, 2, 3, 7, 16, 31, 64, 100, 257, 1000, 4096};
    return sizes[random.Below(std::size(sizes))];
  };
  for (int i = 0; i < 300; ++i) {
    std::string workload;
    switch (random.Below(4)) {
      case 0:
        workload = absl::StrCat("matmul(m=", size(), ",n=", size(),
                                ",k=", size(), ")");
        break;
      case 1:
        workload = absl::StrCat(
            "conv2d(n=", 1 + random.Below(3), ",h=", 5 + random.Below(60),
            ",w=", 5 + random.Below(60), ",ci=", size(), ",co=", size(),
            ",kh=", 1 + random.Below(3), ",kw=", 1 + random.Below(5),
            ",stride=", 1 + random.Below(2), ",pad=", random.Below(3),
            ",layout=", random.Below(2) == 0 ? "NHWC" : "NCHW", ")");
        break;
      case 2:
        workload = absl::StrCat("softmax(rows=", size(), ",cols=", size(), ")");
        break;
      default:
        workload = absl::StrCat(
            "C[i,j] = sum(k) A[i,k] * B[j,k]; D[i,j] = C[i,j] + b[i]; S[i] = "
            "max(j) D[i,j] where i=",
            size(), ", j=", size(), ", k=", size());
    }
    const char* target = random.Below(2) == 0 ? kAvx512 : kNeon;
    const int threads = 1 + static_cast<int>(random.Below(4));
    const Space space = SpaceOf(workload, target, threads);
    const std::vector<Schedule> seeds = space.Seeds();
    ASSERT_EQ(seeds[0], space.Default());
    EXPECT_LE(seeds.size(), 40u);
    EXPECT_EQ(std::set<Schedule>(seeds.begin(), seeds.end()).size(),
              seeds.size());
    for (const Schedule& seed : seeds) {
      ASSERT_EQ(space.Refusal(seed), std::nullopt)
          << workload << " " << space.Print(seed);
    }
    const absl::Status status = loop::Verify(space.Emit(space.Default()));
    ASSERT_TRUE(status.ok()) << workload << ": " << status.ToString();
  }
}

TEST(SpaceTest, SchedulesAdaptToNeighbouringShapes) {
  const struct {
    const char* from;
    const char* to;
    int at_least;  // of 100 adapted
  } kCases[] = {
      {"matmul(m=512,n=512,k=512)", "matmul(m=500,n=480,k=512)", 100},
      {"matmul(m=512,n=512,k=512)", "matmul(m=8,n=512,k=512)", 100},
      {"conv2d(n=1,h=28,w=28,ci=64,co=64,kh=3,kw=3,pad=1)",
       "conv2d(n=1,h=14,w=14,ci=96,co=128,kh=3,kw=3,pad=1)", 100},
      {"softmax(rows=64,cols=512)", "softmax(rows=3,cols=100)", 100},
      // Another structure: nothing to adapt.
      {"softmax(rows=64,cols=512)", "matmul(m=64,n=64,k=64)", 0},
  };
  for (const auto& c : kCases) {
    const Space from = SpaceOf(c.from), to = SpaceOf(c.to);
    regatta::Random random(2);
    int adapted = 0, tried = 0;
    while (tried < 100) {
      const Schedule schedule = *from.Sample(random);
      if (schedule.sketch != 0) continue;
      ++tried;
      const auto result = to.Adapt(from.Print(schedule));
      if (!result) continue;
      ++adapted;
      EXPECT_EQ(to.Refusal(*result), std::nullopt);
      EXPECT_TRUE(to.Parse(to.Print(*result)).ok());
    }
    EXPECT_GE(adapted, c.at_least) << c.from << " to " << c.to;
    if (c.at_least == 0) {
      EXPECT_EQ(adapted, 0);
    }
  }
}

TEST(SpaceTest, AScheduleAdaptsToItsOwnSpaceUnchanged) {
  for (const char* workload : kWorkloads) {
    const Space space = SpaceOf(workload);
    regatta::Random random(4);
    for (int i = 0; i < 100; ++i) {
      const Schedule schedule = *space.Sample(random);
      EXPECT_EQ(space.Adapt(space.Print(schedule)), schedule);
    }
  }
}

// Answers to shapes that nobody measured rest on these two.
TEST(SpaceTest, ParsesOrAdaptsWhatItCarriesOver) {
  const std::pair<const char*, const char*> kShapes[] = {
      {"matmul(m=512,n=512,k=512)", "matmul(m=9,n=200,k=31)"},
      {"matmul(m=9,n=200,k=31)", "matmul(m=512,n=512,k=512)"},
      {"conv2d(n=1,h=28,w=28,ci=64,co=64,kh=3,kw=3,pad=1)",
       "conv2d(n=1,h=14,w=5,ci=3,co=128,kh=3,kw=3,pad=1)"},
      {"softmax(rows=64,cols=512)", "softmax(rows=3,cols=100)"},
      {"matmul(m=64,n=64,k=64)", "softmax(rows=64,cols=64)"}};
  for (const auto& [from, to] : kShapes) {
    const Space space = SpaceOf(to), foreign = SpaceOf(from);
    regatta::Random random(5);
    for (int i = 0; i < 200; ++i) {
      std::string text = foreign.Print(*foreign.Sample(random));
      if (i % 10 == 9) text = text.substr(0, random.Below(text.size()));
      const auto parsed = space.Parse(text);
      const auto wanted = parsed.ok() && !space.Refusal(*parsed)
                              ? std::optional<Schedule>(*parsed)
                              : space.Adapt(text);
      EXPECT_EQ(space.CarryOver(text), wanted) << text << " to " << to;
    }
  }
}

TEST(SpaceTest, SaysTheSameWhateverItWasAskedBefore) {
  regatta::Random random(11);
  const auto below = [&](uint64_t n) { return 1 + random.Below(n); };
  for (int i = 0; i < Scaled(60); ++i) {
    const std::string workloads[] = {
        absl::StrCat("matmul(m=", below(700), ",n=", below(700),
                     ",k=", below(700), ")"),
        absl::StrCat("dense(m=", below(40), ",n=", below(700),
                     ",k=", below(700), ",activation=relu)"),
        absl::StrCat("conv2d(n=1,h=", below(40), ",w=", below(40),
                     ",ci=", below(70), ",co=", below(70), ",kh=3,kw=3,pad=1)"),
        absl::StrCat("depthwise_conv2d(n=1,h=", below(40), ",w=", below(40),
                     ",c=", below(70), ",kh=3,kw=3,pad=1)"),
        absl::StrCat("softmax(rows=", below(90), ",cols=", below(700), ")"),
        absl::StrCat("C[i,j] = A[j,i] where i=", below(90), ", j=", below(90)),
        absl::StrCat("C[j] = sum(i) A[i,j] where i=", below(90),
                     ", j=", below(90))};
    for (const std::string& workload : workloads) {
      const int threads = random.Below(2) == 0 ? 1 : 8;
      // One is asked for its default alone, the other last of all.
      const Space fresh = SpaceOf(workload, kAvx512, threads);
      const std::string text = fresh.Print(fresh.Default());
      const Space used = SpaceOf(workload, kAvx512, threads);
      const double size = used.Size();
      const std::vector<Schedule> seeds = used.Seeds();
      regatta::Random seed(3);
      const auto sample = used.Sample(seed);
      EXPECT_EQ(used.Print(used.Default()), text) << workload;
      EXPECT_EQ(seeds[0], used.Default()) << workload;
      EXPECT_EQ(fresh.Parse(text).value(), fresh.Default()) << workload;
      EXPECT_EQ(fresh.Seeds(), seeds) << workload;
      EXPECT_EQ(fresh.Size(), size) << workload;
      regatta::Random same_seed(3);
      EXPECT_EQ(fresh.Sample(same_seed), sample) << workload;
    }
  }
}

TEST(SpaceTest, DistinctSchedulesGiveDistinctLoops) {
  for (const char* workload :
       {"matmul(m=127,n=193,k=511)", "matmul(m=512,n=512,k=512)",
        "conv2d(n=1,h=14,w=14,ci=64,co=64,kh=3,kw=3,pad=1)",
        "softmax(rows=64,cols=1000)"}) {
    const Space space = SpaceOf(workload);
    regatta::Random random(6);
    std::set<Schedule> schedules;
    std::set<std::string> loops;
    for (int i = 0; i < 200; ++i) {
      const Schedule schedule = *space.Sample(random);
      if (!schedules.insert(schedule).second) continue;
      loops.insert(loop::ToString(space.Emit(schedule)));
    }
    // What is left are sizes that come out alike.
    EXPECT_GE(loops.size(), schedules.size() * 97 / 100) << workload;
  }
}

TEST(SpaceTest, LongChainsOfStagesHaveFewSketches) {
  std::string text = "T0[i] = A[i] + 1";
  for (int i = 1; i < 12; ++i) {
    absl::StrAppend(&text, "; T", i, "[i] = T", i - 1, "[i] * 2");
  }
  const Space space = SpaceOf(text + " where i=100");
  EXPECT_LE(space.Seeds().size(), 40u);
  EXPECT_TRUE(Oracle(space.context().workload).Agrees(space, space.Default()));
}

TEST(SpaceTest, ATargetWithoutVectorsHasASpace) {
  const Space space =
      SpaceOf("matmul(m=5,n=6,k=7)", "cpu,triple=riscv64-linux-gnu");
  regatta::Random random(8);
  const Oracle oracle(space.context().workload);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(oracle.Agrees(space, *space.Sample(random)));
  }
}

TEST(SpaceTest, AnUnknownKindOfTargetIsAnError) {
  Target target;
  target.kind = "abacus";
  const auto space = Space::Create(
      {.workload = WorkloadOf("matmul(m=5,n=6,k=7)"), .target = target});
  ASSERT_FALSE(space.ok());
  EXPECT_NE(space.status().message().find("abacus"), std::string::npos);
}

}  // namespace
}  // namespace regatta
