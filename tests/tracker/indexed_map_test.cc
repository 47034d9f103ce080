#include "tracker/indexed_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace regatta {
namespace {

using ::testing::ElementsAre;

TEST(IndexedMap, IsAMapWhateverIsDoneToIt) {
  IndexedMap<std::string, int> map;
  std::map<std::string, int> model;
  Random random(7);
  for (int step = 0; step < 20'000; ++step) {
    const std::string key =
        absl::StrCat("a name too long for its object ", random.Below(200));
    const int value = static_cast<int>(random.Below(1'000));
    switch (random.Below(5)) {
      case 0:
        EXPECT_EQ(map.try_emplace(key, value).second,
                  model.try_emplace(key, value).second);
        break;
      case 1:
        map[key] = model[key] = value;
        break;
      case 2:
        EXPECT_EQ(map.erase(key), model.erase(key));
        break;
      case 3:
        if (const auto found = map.find(key); found != map.end()) {
          map.erase(found);
          EXPECT_EQ(model.erase(key), 1u);
        }
        break;
      default: {
        const auto at = map.lower_bound(key);
        const auto expected = model.lower_bound(key);
        ASSERT_EQ(at == map.end(), expected == model.end());
        if (at != map.end()) {
          EXPECT_EQ(at->first, expected->first);
        }
      }
    }
    const auto found = map.find(key);
    const auto expected = model.find(key);
    ASSERT_EQ(found == map.end(), expected == model.end()) << step;
    ASSERT_EQ(map.contains(key), expected != model.end()) << step;
    if (found != map.end()) {
      ASSERT_EQ(found->second, expected->second) << step;
    }
    ASSERT_EQ(map.size(), model.size()) << step;
  }
  const std::map<std::string, int> in_order(map.begin(), map.end());
  EXPECT_EQ(in_order, model);
}

TEST(IndexedMap, AnEntryMayBeErasedByItsOwnKey) {
  IndexedMap<std::string, int> map;
  map["first, longer than any string within its object"] = 1;
  map["second"] = 2;
  EXPECT_EQ(map.erase(map.begin()->first), 1u);
  EXPECT_FALSE(map.empty());
  EXPECT_EQ(map.begin()->first, "second");
}

TEST(IndexedMap, EntriesStayWhereTheyAre) {
  IndexedMap<int, int> map;
  int* const first = &map[1];
  for (int i = 2; i < 1'000; ++i) map[i] = i;
  for (int i = 500; i < 1'000; ++i) map.erase(i);
  EXPECT_EQ(&map[1], first);
}

TEST(IndexedMap, HandsOutItsEntriesInTheOrderOfTheirKeys) {
  IndexedMap<int, char> map;
  for (const auto& [key, value] :
       std::vector<std::pair<int, char>>{{3, 'c'}, {1, 'a'}, {2, 'b'}}) {
    map[key] = value;
  }
  std::vector<char> values;
  for (const auto& [key, value] : map) values.push_back(value);
  EXPECT_THAT(values, ElementsAre('a', 'b', 'c'));
}

}  // namespace
}  // namespace regatta
