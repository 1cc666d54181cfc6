// SPDX-License-Identifier: MIT
//
// Starts the page.
import 'uplot/dist/uPlot.min.css';
import './ui/theme.css';
import './ui/layout.css';
import './ui/views.css';

document.getElementById('app')?.append('Muninn');
