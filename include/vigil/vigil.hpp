#pragma once

/// Everything of the library `vigil`.

#include <vigil/core/function.hpp>
#include <vigil/core/time.hpp>
#include <vigil/core/version.hpp>
#include <vigil/loop/async.hpp>
#include <vigil/loop/loop.hpp>
#include <vigil/queue/heap.hpp>
#include <vigil/queue/paged_array.hpp>
#include <vigil/queue/parking_ring.hpp>
#include <vigil/queue/schedule.hpp>
#include <vigil/queue/timer_set.hpp>
