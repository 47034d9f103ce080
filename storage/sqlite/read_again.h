// A short read, with a state of its own, that begins again with a new one when
// it was asked to end (Connection::AskToEnd).
#ifndef REGATTA_STORAGE_SQLITE_READ_AGAIN_H_
#define REGATTA_STORAGE_SQLITE_READ_AGAIN_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/reader_pool.h"

namespace regatta::sqlite {

// `read` takes a Connection& and gives a StatusOr; what it did besides is
// undone when it is called anew. Aborted: it was asked to end three times.
template <typename Read>
std::invoke_result_t<Read, Connection&> ReadAgain(ReaderPool& readers,
                                                  const Read& read) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    ASSIGN_OR_RETURN(const ReaderPool::Loan db, readers.Borrow());
    ASSIGN_OR_RETURN(const ReadTransaction state, ReadTransaction::Begin(*db));
    auto result = read(*db);
    if (!absl::IsAborted(result.status()) || tries == kTries) return result;
  }
}

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_READ_AGAIN_H_
