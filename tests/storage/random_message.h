// Messages with random contents in every field, for round trips.
#ifndef REGATTA_TESTS_STORAGE_RANDOM_MESSAGE_H_
#define REGATTA_TESTS_STORAGE_RANDOM_MESSAGE_H_

#include "base/random.h"
#include "google/protobuf/message.h"

namespace regatta::testing {

// Fills about half of the fields, with extreme values now and then; of a oneof,
// one. Enumerators are valid ones.
void Randomise(google::protobuf::Message& message, Random& random);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_STORAGE_RANDOM_MESSAGE_H_
