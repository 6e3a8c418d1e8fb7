// Threads that sleep on a condition variable when there is nothing to do.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace scb {

class Pool {
 public:
  // The calling thread works as well: a pool of one thread starts none.
  explicit Pool(int n_threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int n_threads() const { return n_threads_; }

  // Calls task(i) for all i < n_tasks, in any order and on any thread; the first exception is passed on.
  void run(std::size_t n_tasks, const std::function<void(std::size_t)>& task);

 private:
  void start();
  void work();
  void take(const std::function<void(std::size_t)>& task, std::size_t n_tasks);

  const int n_threads_;
  long process_ = 0;  // threads do not survive fork()
  std::vector<std::thread> threads_;
  std::mutex calls_;  // one call at a time; others do their tasks alone
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool stop_ = false;
  std::size_t generation_ = 0;
  std::size_t working_ = 0;
  const std::function<void(std::size_t)>* task_ = nullptr;
  std::size_t n_tasks_ = 0;
  std::atomic<std::size_t> next_{0};
  std::exception_ptr error_;
};

// Runs tasks on a pool, or one after the other without one.
template <class Task>
void run(Pool* pool, std::size_t n_tasks, const Task& task) {
  if (pool == nullptr || pool->n_threads() < 2 || n_tasks < 2) {
    for (std::size_t i = 0; i < n_tasks; ++i) task(i);
  } else {
    pool->run(n_tasks, std::function<void(std::size_t)>(std::cref(task)));
  }
}

}  // namespace scb
