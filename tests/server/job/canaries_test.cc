// The canaries that a server offers its tracker.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/server/support/server_world.h"

namespace regatta {
namespace {

using testing::ServerWorld;
using testing::SimulatedBoard;

TEST(Canaries, EveryRealKindOfBoardHasTwoAndHearsOfThemOnce) {
  ServerWorld world;
  world.jobs().Step();
  ASSERT_EQ(world.fleet().canaries().size(), 1u);
  const SimulatedBoard board = world.fleet().boards()[0];
  std::set<std::string> names;
  for (const v1::Canary& canary : world.fleet().canaries()[0].canaries()) {
    names.insert(canary.name());
    EXPECT_EQ(canary.trial().device_class(), board.device_class);
    EXPECT_EQ(canary.trial().target(), board.target);
    EXPECT_EQ(canary.trial().compiler_version(), board.compiler);
    EXPECT_FALSE(canary.trial().schedule().text().empty());
    EXPECT_EQ(canary.trial().policy().threads(), 1);
  }
  EXPECT_EQ(names, (std::set<std::string>{"bandwidth", "compute"}));

  world.fleet().SendFleet();
  world.jobs().Step();
  EXPECT_EQ(world.fleet().canaries().size(), 1u) << "nothing is new";

  // A simulated board has none; one of another class has its own.
  SimulatedBoard other = board;
  other.id = "other";
  other.device_class = "another-class";
  SimulatedBoard model = board;
  model.id = "model";
  model.device_class = "model-class";
  model.simulated = true;
  world.fleet().AddBoard(other);
  world.fleet().AddBoard(model);
  world.fleet().SendFleet();
  world.jobs().Step();
  ASSERT_EQ(world.fleet().canaries().size(), 2u);
  for (const v1::Canary& canary : world.fleet().canaries()[1].canaries()) {
    EXPECT_EQ(canary.trial().device_class(), "another-class");
  }

  // A tracker that was away may have lost them.
  world.fleet().Disconnect(/*tell=*/true);
  world.jobs().Step();
  world.fleet().Connect(&world.jobs());
  world.jobs().Step();
  // Each class's in a message of their own.
  ASSERT_EQ(world.fleet().canaries().size(), 4u);
  EXPECT_EQ(world.fleet().canaries()[2].canaries_size(), 2);
  EXPECT_EQ(world.fleet().canaries()[3].canaries_size(), 2);
}

TEST(Canaries, AClassOfManyKindsHasThoseOfSixteen) {
  ServerWorld world;
  const SimulatedBoard board = world.fleet().boards()[0];
  for (int i = 0; i < 40; ++i) {
    SimulatedBoard other = board;
    other.id = absl::StrCat("other", i);
    // Of one class, with other limits.
    other.target = absl::StrCat(
        "cpu,triple=x86_64-linux-gnu,mcpu=znver4,"
        "vector_registers=",
        8 + i);
    world.fleet().AddBoard(other);
  }
  world.fleet().SendFleet();
  world.jobs().Step();
  ASSERT_EQ(world.fleet().canaries().size(), 1u);
  EXPECT_EQ(world.fleet().canaries()[0].canaries_size(), 32);
}

}  // namespace
}  // namespace regatta
