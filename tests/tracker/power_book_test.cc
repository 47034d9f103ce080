#include "tracker/power_book.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

// Of many boards of a unit whose commands take 10 s, none comes back.
TEST(PowerBookTest, EveryBoardOfABusyUnitGetsBothStepsInTurn) {
  constexpr int kBoards = 24;
  constexpr int kTakes = 10;
  std::map<std::string, PowerHook> hooks;
  for (int i = 0; i < kBoards; ++i) {
    PowerHook& hook = hooks[absl::StrCat("b", 10 + i)];
    hook.unit = "pdu";
    hook.off.argv = {"/bin/pdu", "off"};
    hook.on.argv = {"/bin/pdu", "on"};
  }
  PowerBook book(hooks);
  const SteadyTime start;
  for (const auto& [id, hook] : hooks) {
    book.Start(id, PowerVerb::kCycle, start);
  }
  std::map<std::string, std::vector<std::pair<std::string, int>>> sent;
  std::map<std::string, int> given_up;
  std::string busy;
  int busy_until = 0;
  for (int s = 0; s < 1200; ++s) {
    const SteadyTime now = start + absl::Seconds(s);
    if (!busy.empty() && s == busy_until) {
      book.Done(std::exchange(busy, ""), now);
    }
    for (const PowerSend& send : book.Due(now)) {
      EXPECT_EQ(busy, "");
      busy = send.device_id;
      busy_until = s + kTakes;
      sent[busy].emplace_back(send.command.argv.back(), s);
    }
    for (const std::string& id : book.GiveUps(now)) given_up[id] = s;
  }
  for (const auto& [id, hook] : hooks) {
    ASSERT_GE(sent[id].size(), 2u) << id;
    const auto [first, at] = sent[id][0];
    const auto [second, then] = sent[id][1];
    EXPECT_EQ(first, "off") << id;
    EXPECT_EQ(second, "on") << id;
    EXPECT_LE(then - at, 2 * kTakes + 10) << id << " was off for that long";
    ASSERT_TRUE(given_up.contains(id)) << id;
    EXPECT_GE(given_up[id] - at, 300) << id;
  }
}

}  // namespace
}  // namespace regatta
