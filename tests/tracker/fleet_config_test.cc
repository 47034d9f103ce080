// The fleet's file: what it says, and how its mistakes are told.
#include "tracker/config/fleet_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FleetConfig, SaysWhatBoardsComeWithAndWhoNeedsNoApproval) {
  const auto config = ParseFleetConfig(R"({
    "auto_approve": {"classes": ["rpi5"], "labels": ["rack=2"]},
    "webhook": "http://127.0.0.1:1/x",
    "users": {"ann": {"weight": 3, "most_percent": 25}},
    "boards": {"pi-1": {"labels": {"rack": "2"},
                        "power": {"unit": "pdu-a", "off": ["/bin/pdu", "off"],
                                  "on": "http://pdu/on"}}}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->auto_approve.all);
  EXPECT_THAT(config->auto_approve.classes, ElementsAre("rpi5"));
  EXPECT_EQ(config->webhook, "http://127.0.0.1:1/x");
  EXPECT_EQ(config->users.at("ann").weight, 3);
  EXPECT_EQ(config->users.at("ann").most_percent, 25);
  const BoardConfig& board = config->boards.at("pi-1");
  EXPECT_EQ(board.labels.at("rack"), "2");
  EXPECT_EQ(board.power->off.argv[1], "off");
  EXPECT_EQ(board.power->on.url, "http://pdu/on");
  EXPECT_TRUE(board.power->cycle.empty());
}

TEST(FleetConfig, MistakesAreNamedWithTheirPlace) {
  for (const auto& [text, wrong] :
       std::vector<std::pair<const char*, const char*>>{
           {"", "no JSON"},
           {"[]", "must be an object"},
           {R"({"boards": {"": {}}})", "boards: one of them has no id"},
           {R"({"users": {"": {}}})", "users: one of them has no name"},
           {R"({"boards": {"b1": {}, "b1": {}}})", "'b1' stands twice"},
           {R"({"boards": {}, "boards": {}})", "'boards' stands twice"},
           {R"({"board": {}})", "no 'board' is known here; there are"},
           {R"({"auto_approve": {"all": 1}})",
            "auto_approve.all: must be true"},
           {R"({"auto_approve": {"labels": ["x"]}})", "'x' must be NAME=VALUE"},
           {R"({"webhook": "ftp://x"})", "webhook: must be http://"},
           {R"({"webhook": "http://"})", "webhook: must be http://"},
           {R"({"webhook": "http://h:99999/"})", "webhook: must be http://"},
           {R"({"webhook": "http://h/a b"})", "has blanks"},
           {R"({"webhook": "http://:p@h/"})", "the user before '@' is empty"},
           {R"({"webhook": "http://u%4:p@h/"})", "two hex digits"},
           {R"({"boards": {"a": {"power": {}}}})",
            "boards.a.power: 'unit' is missing"},
           {R"({"boards": {"a": {"power": {"unit": "u", "off": ["/x"]}}}})",
            "boards.a.power: must have 'cycle', or both"},
           {R"({"boards": {"a": {"power": {"unit": "u", "cycle": ["x"]}}}})",
            "boards.a.power.cycle: 'x' must be the whole path"},
           {R"({"boards": {"a": {"power": {"unit": "u", "cycle": []}}}})",
            "boards.a.power.cycle: must be a list of texts"},
           {R"({"users": {"ann": {"weight": 0}}})",
            "users.ann.weight: must be a number from 0.001 to 1000"},
           {R"({"users": {"ann": {"most_percent": "x"}}})",
            "users.ann.most_percent: must be a number from 1 to 100"},
           {R"({"boards": {"a": {"labels": {"r": 2}}}})",
            "boards.a.labels.r: must be a text"}}) {
    const auto config = ParseFleetConfig(text);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(wrong));
  }
  const auto missing = ReadFleetConfig("/nowhere/fleet.json");
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("/nowhere/fleet.json"));
  EXPECT_THAT(std::string(ReadFleetConfig("/tmp").status().message()),
              HasSubstr("/tmp is a folder"));
}

}  // namespace
}  // namespace regatta
