// Mutations of messages that keep them messages: libFuzzer's own, on bytes, end
// most protocol buffers at their first length.
#ifndef REGATTA_TESTS_FUZZ_MESSAGE_MUTATOR_H_
#define REGATTA_TESTS_FUZZ_MESSAGE_MUTATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "google/protobuf/message.h"

namespace regatta::fuzz {

// What libFuzzer's custom mutator is to do where inputs are messages in text
// form: `message` is one of the inputs' type, its content does not matter. Text
// that does not parse becomes an empty message. Returns the bytes written to
// `data`, at most `max_size`; `size` when nothing that fits was found.
size_t MutateText(google::protobuf::Message& message, uint8_t* data,
                  size_t size, size_t max_size, unsigned seed);

// The message that the text stands for; false, and an empty one, when it stands
// for none.
bool ReadText(const uint8_t* data, size_t size,
              google::protobuf::Message* message);

// Gives a fresh Player the steps of the Script that the text stands for, as
// many as may be worth the time.
template <typename Script, typename Player>
int PlayText(const uint8_t* data, size_t size) {
  constexpr int kMaxSteps = 64;
  Script script;
  if (!ReadText(data, size, &script)) return 0;
  Player player;
  for (int i = 0; i < std::min(script.steps_size(), kMaxSteps); ++i) {
    player.Play(script.steps(i));
  }
  return 0;
}

}  // namespace regatta::fuzz

#endif  // REGATTA_TESTS_FUZZ_MESSAGE_MUTATOR_H_
