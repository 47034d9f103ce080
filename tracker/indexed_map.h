// Maps whose lookups do not walk a tree: with ten thousand entries such a walk
// misses the processor's caches at each step. Their references stay valid until
// their own entry is erased.
//
// Not thread-safe.
#ifndef REGATTA_TRACKER_INDEXED_MAP_H_
#define REGATTA_TRACKER_INDEXED_MAP_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace regatta {

// A map of names without an order: what it is iterated for may not show in what
// the tracker does.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>()(name);
  }
};
template <typename T>
using NameMap = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

// A map in the order of its keys.
template <typename Key, typename T>
class IndexedMap {
  using Map = std::map<Key, T, std::less<>>;
  // Of strings a view of the key in the map, where it stays.
  using Name = std::conditional_t<std::is_same_v<Key, std::string>,
                                  std::string_view, Key>;

 public:
  using iterator = typename Map::iterator;
  using const_iterator = typename Map::const_iterator;

  IndexedMap() = default;
  IndexedMap(const IndexedMap&) = delete;
  IndexedMap& operator=(const IndexedMap&) = delete;

  iterator find(Name name) {
    const auto found = index_.find(name);
    return found == index_.end() ? map_.end() : found->second;
  }
  const_iterator find(Name name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? map_.end() : const_iterator(found->second);
  }
  bool contains(Name name) const { return index_.contains(name); }

  // The entry, and whether it is new; else nothing is made of `args`.
  template <typename... Args>
  std::pair<iterator, bool> try_emplace(Name name, Args&&... args) {
    if (const auto found = index_.find(name); found != index_.end()) {
      return {found->second, false};
    }
    const iterator entry =
        map_.try_emplace(Key(name), std::forward<Args>(args)...).first;
    index_.emplace(entry->first, entry);
    return {entry, true};
  }
  T& operator[](Name name) { return try_emplace(name).first->second; }

  iterator erase(iterator entry) {
    index_.erase(entry->first);
    return map_.erase(entry);
  }
  size_t erase(Name name) {
    const auto found = index_.find(name);
    if (found == index_.end()) return 0;
    const iterator entry = found->second;
    index_.erase(found);
    map_.erase(entry);
    return 1;
  }

  iterator begin() { return map_.begin(); }
  iterator end() { return map_.end(); }
  const_iterator begin() const { return map_.begin(); }
  const_iterator end() const { return map_.end(); }
  // The first entry whose key is no less.
  iterator lower_bound(Name name) { return map_.lower_bound(name); }
  const_iterator lower_bound(Name name) const { return map_.lower_bound(name); }
  size_t size() const { return map_.size(); }
  bool empty() const { return map_.empty(); }

 private:
  Map map_;
  std::unordered_map<Name, iterator> index_;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_INDEXED_MAP_H_
